#!/usr/bin/env python3
"""sgl-migrate audit: what is read and how, libraries, verdicts, forms; archives, images, processes; files that lie."""
import bz2, gzip, io, json, lzma, os, pathlib, re, resource, struct, subprocess, sys, tarfile, time, zipfile
from elf_files import HEAD, OWNER, ROUTER, ROW, USER, Elf, compiled, patched, user
from tool import Tree, contains, equal, main, run
from suite import Skip

ARGS = ["--kernel", "0.4.6"]
SHIM = pathlib.Path(os.environ["BUILD_DIR"]) / "lib" / "libsgl_kernel_compat.so"


def rows(tree, *args):
    return tree.run("audit", *ARGS, "--format", "tsv", *(args or ["."])).out


def facts(tree, *args):
    return json.loads(tree.run("audit", *ARGS, "--format", "json", *(args or ["."])).out)


def verdicts(tree, *args):
    """file: verdict name"""
    log = json.loads(tree.run("audit", "--format", "json", *(args or ["."])).out)
    return [f'{log["files"][f["file"]]["path"]}: {f["verdict"]} {f["symbol"] or f["name"]}' for f in log["findings"] if f["kind"] != "torch-abi"]


def zipped(members, packing=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", packing) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def tarred(members, pack=lambda data: data):
    """str: a link; None: a folder; (path,): a hard link."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in members.items():
            one = tarfile.TarInfo(name)
            one.type = tarfile.LNKTYPE if isinstance(data, tuple) else tarfile.SYMTYPE if isinstance(data, str) else tarfile.DIRTYPE if data is None else tarfile.REGTYPE
            one.linkname = data if isinstance(data, str) else data[0] if isinstance(data, tuple) else ""
            one.size = len(data) if isinstance(data, bytes) else 0
            archive.addfile(one, io.BytesIO(data) if isinstance(data, bytes) else None)
    return pack(out.getvalue())


# --- archives ---------------------------------------------------------------------------------------------------------


def test_archives_of_all_kinds():
    zstd = lambda data: subprocess.run(["zstd", "-qc"], input=data, capture_output=True, check=True).stdout
    files = {"a.whl": zipped({"p/_C.so": user()}), "b.zip": zipped({"p/_C.so": user()}, zipfile.ZIP_STORED), "c.tar": tarred({"p/_C.so": user()}),
             "d.tar.gz": tarred({"p/_C.so": user()}, gzip.compress), "e.tar.xz": tarred({"p/_C.so": user()}, lzma.compress),
             "f.tar.zst": tarred({"p/_C.so": user()}, zstd)}
    with Tree(files) as tree:
        equal(rows(tree), "".join(f"{name}\t{ROW}" for name in files))
        for name in files:  # and as PATH
            equal(rows(tree, name), f"{name}\t{ROW}")


def test_archives_in_archives():
    wheel = zipped({"p/_C.so": user()})
    with Tree({"x.tar.gz": tarred({"deep/w.whl": wheel, "t.tar": tarred({"w2.whl": wheel})}, gzip.compress)}) as tree:
        members = [f["member"] for f in facts(tree)["files"]]
        equal(members, ["deep/w.whl!p/_C.so", "t.tar!w2.whl!p/_C.so"])
        done = tree.run("audit", *ARGS, "--format", "tsv", "--limit", "depth=2", ".")
        equal(done.out, f"x.tar.gz\t-\tnot-analysed\nx.tar.gz\t{ROW}")
        contains(done.err, "x.tar.gz!t.tar!w2.whl: not analysed: it exceeds the limit depth of 2; see --limit\n")
        equal(done.returncode, 5)


def test_zip_behind_something_else():
    """Self-extracting programs, and scripts of Python with a zip file behind."""
    packed = zipped({"p/_C.so": user()})
    commented = packed[:-2] + b"\x03\x00PK\x05"
    program = compiled("int main() {}\n", "-pie", "-fPIE", program=True)
    files = {"a.pyz": b"#!/usr/bin/env python3\n" + packed, "b.pex": b"#!/bin/sh\nexec\n" + commented, "c.run": program + packed, "d.bin": b"MZ" + bytes(5000) + packed,
             "e.whl": b"prefix\n" + packed, "f.zip": zipped({"in/e.whl": b"prefix\n" + packed, "in/no.pyz": b"#!/usr/bin/python3\nprint()\n"}), "g.pyz": b"#!/usr/bin/python3\nprint()\n"}
    with Tree(files) as tree:
        for name in ("a.pyz", "b.pex", "c.run", "d.bin", "e.whl", "f.zip"):
            equal((name, rows(tree, name)), (name, f"{name}\t{ROW}"))
        equal(rows(tree, "g.pyz"), "g.pyz\t-\tnot-analysed\n")
        equal(rows(tree), "".join(f"{name}\t{ROW}" for name in ("a.pyz", "b.pex", "c.run", "e.whl", "f.zip")))  # d.bin has no name of an archive
        equal([f["member"] for f in facts(tree, "c.run")["files"]], [None, "p/_C.so"])


def test_static_archive_defines_what_it_needs():
    with Tree({"user.o": compiled(USER, name="x.o"), "owner.o": compiled(OWNER, name="x.o")}) as tree:
        subprocess.run(["ar", "rcs", "both.a", "user.o", "owner.o"], cwd=tree.path, check=True)
        subprocess.run(["ar", "rcs", "need.a", "user.o"], cwd=tree.path, check=True)
        subprocess.run(["ar", "rcsT", "thin.a", "user.o"], cwd=tree.path, check=True)
        tree.put("hidden.o", compiled(OWNER.replace("void dsv3", '__attribute__((visibility("hidden"))) void dsv3', 1), name="x.o"))
        subprocess.run(["ar", "rcs", "own.a", "user.o", "hidden.o"], cwd=tree.path, check=True)
        equal(rows(tree), f"both.a\tdsv3_router_gemm\tprovides\nneed.a\t{ROW}owner.o\tdsv3_router_gemm\tprovides\nthin.a\t-\tnot-analysed\nuser.o\t{ROW}")


def test_static_archive_cut_in_a_header():
    member = lambda name, data: f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n".encode() + data + b"\n" * (len(data) % 2)
    whole = b"!<arch>\n" + member("a.o/", compiled(USER, name="x.o")) + member("b.o/", compiled(OWNER, name="x.o"))
    second = whole.index(b"b.o/")
    cuts = {f"{at}.a": whole[:at] for at in (10, 67, second + 2, second + 59)}
    with Tree({**cuts, "x.whl": zipped(cuts), "x.tar": tarred(cuts), "whole.a": whole, "end.a": whole[:second]}) as tree:
        bad = [row.split("\t")[0] for row in rows(tree).splitlines() if row.endswith("not-analysed")]
        equal(bad, sorted([*cuts, "x.tar", "x.whl"]))


def test_traversal_is_a_label():
    names = ["../../../../tmp/sgl-escape.so", "/tmp/sgl-escape.so", "a/../../b.so", "\x1b[31mred.so"]
    with Tree({"a.zip": zipped({n: user() for n in names})}) as tree:
        done = tree.run("audit", *ARGS, "a.zip", env=dict(os.environ, TMPDIR=str(tree.path)))
        equal("\x1b" in done.out, False)
        equal(done.out.count("shim dsv3_router_gemm"), 4)
        equal(sorted(p.name for p in tree.path.rglob("*")), ["a.zip"])
        equal(os.path.exists("/tmp/sgl-escape.so"), False)


def test_limits():
    zeros = b"\x7fELF" + bytes(90 << 20)
    bomb = zipped({"a.so": zeros})
    with Tree({"bomb.zip": bomb, "many.zip": zipped({f"{i}.so": user() for i in range(20)}), "tmp/x": ""}) as tree:
        def one(path, *args):
            done = tree.run("audit", *ARGS, "--format", "tsv", *args, path, env=dict(os.environ, TMPDIR=str(tree.path / "tmp")))
            equal(sorted(p.name for p in (tree.path / "tmp").iterdir()), ["x"])
            return done
        start = time.monotonic()
        done = one("bomb.zip")
        equal((done.out, done.returncode), ("bomb.zip\t-\tnot-analysed\n", 4))
        contains(done.err, "limit ratio of 1000; see --limit")
        equal(time.monotonic() - start < 10, True)
        contains(one("bomb.zip", "--limit", "member=1M").err, "bomb.zip!a.so: not analysed: it exceeds the limit member of 1048576; see --limit\n")
        contains(one("bomb.zip", "--limit", "total=80M").err, "limit total of 83886080")
        contains(one("bomb.zip", "--limit", "ratio=100000").err, "a.so: not analysed: damaged")  # read in full, but no ELF file
        done = one("many.zip", "--limit", "members=10")
        contains(done.err, "limit members of 10")
        equal(done.out, f"many.zip\t-\tnot-analysed\nmany.zip\t{ROW}")
        for wrong in ("member", "member=", "member=0", "member=x", "size=1", "member=99999999999G", "=1", "member=-1"):
            done = one("many.zip", "--limit", wrong)
            equal((done.returncode, done.out), (8, ""))
            contains(done.err, f"sgl-migrate: --limit '{wrong}': ")


def test_limit_of_file_sizes():
    with Tree({"a.zip": zipped({"a.so": user(), "b.so": user() + bytes(200000)})}) as tree:
        done = tree.run("audit", *ARGS, "--format", "tsv", "a.zip", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000)))
        equal((done.returncode, done.out), (5, f"a.zip\t-\tnot-analysed\na.zip\t{ROW}"))
        contains(done.err, "a.zip!b.so: not analysed: the temporary folder: File too large\n")


def test_no_temporary_folder():
    with Tree({"a.whl": zipped({"_C.so": user()})}) as tree:
        done = tree.run("audit", *ARGS, "--format", "tsv", ".", env=dict(os.environ, TMPDIR="/nowhere"))
        equal((done.out, done.returncode), ("a.whl\t-\tnot-analysed\n", 4))
        contains(done.err, "a.whl!_C.so: not analysed: no file for it in the temporary folder: No such file")


def test_damaged_archives():
    wheel, tar = zipped({"_C.so": user(), "x": os.urandom(5000)}), tarred({"_C.so": user(), "x": os.urandom(5000)}, gzip.compress)
    with Tree({"a.whl": wheel[:-200], "b.tar.gz": tar[:-3000], "c.whl": b"no zip", "d.whl": b"", "e.so": b"", "f.so": b"\0junk", "g.so": "INPUT(libx.so)\n",
               "h.so": "version https://git-lfs.github.com/spec/v1\n"}) as tree:
        done = tree.run("audit", *ARGS, "--format", "tsv", ".")
        bad = [line.split("\t")[0] for line in done.out.splitlines() if line.endswith("not-analysed")]
        equal([b for b in bad if b != "a.whl"], ["b.tar.gz", "c.whl", "d.whl", "e.so", "f.so", "h.so"])
        equal(done.returncode & 4, 4)
        for why in ("c.whl: not analysed: named like a wheel", "e.so: not analysed: named like a library, but it is empty", "a pointer of Git LFS"):
            contains(done.err, why)


def test_wrong_checksum():
    """A byte of a stored member is another one than when it was packed; also of a wheel in a zip, and of a tar."""
    def broken(data, member):
        at = data.index(member) + len(member) // 2
        return patched(data, (at, "B", data[at] ^ 0x20))
    zeros = user() + bytes(1 << 20)  # more than one block
    wheel, tar = zipped({"_C.so": user()}), tarred({"t.so": user()})
    stored = lambda name, data: broken(zipped({name: data}, zipfile.ZIP_STORED), data)
    packed = zipped({"_C.so": user()})
    packed = packed.replace(struct.pack("<I", zipfile.ZipFile(io.BytesIO(packed)).infolist()[0].CRC), b"none")
    with Tree({"a.whl": stored("_C.so", user()), "b.zip": stored("i.whl", wheel), "c.zip": stored("i.tar", tar), "d.whl": packed, "e.whl": stored("z.so", zeros),
               "f.whl": zipped({"_C.so": user()}, zipfile.ZIP_STORED)}) as tree:
        done = tree.run("audit", *ARGS, "--format", "tsv", ".")
        bad = [line.split("\t")[0] for line in done.out.splitlines() if line.endswith("not-analysed")]
        equal((bad, done.returncode), (["a.whl", "b.zip", "c.zip", "d.whl", "e.whl"], 5))
        contains(done.err, "a.whl!_C.so: not analysed: truncated or damaged: ")
        equal(tree.run("audit", *ARGS, "a.whl").returncode, 4)


def test_packed_streams_are_checked_to_their_end():
    """The checksum of a packed tar file stands behind all that a tar reader looks at."""
    zstd = lambda data: subprocess.run(["zstd", "-qc", "--check"], input=data, capture_output=True, check=True).stdout
    tar = tarred({"_C.so": user(), "x": os.urandom(50000)})
    flip = lambda data, at: data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]
    stored, gz = gzip.compress(tar, 0), gzip.compress(tar)
    good = {"a.tar.gz": gz, "b.tar.gz": gzip.compress(tar[:3000]) + gzip.compress(tar[3000:]), "c.tar.gz": gz + bytes(512), "d.tar.gz": gz + b"something else",
            "e.tar.xz": lzma.compress(tar), "f.tar.bz2": bz2.compress(tar), "g.tar.zst": zstd(tar)}
    bad = {"a.tar.gz": flip(stored, stored.index(user()[:200]) + len(user()) - 40), "b.tar.gz": flip(gz, -6), "c.tar.gz": flip(gz, -2), "d.tar.gz": gz[:-8], "e.tar.gz": gz[:-3],
           "f.tar.gz": gz[:len(gz) // 2], "g.tar.gz": gzip.compress(tar[:3000]) + flip(gzip.compress(tar[3000:]), -6), "h.tar.xz": lzma.compress(tar)[:-4], "i.tar.xz": flip(lzma.compress(tar), -30),
           "j.tar.bz2": bz2.compress(tar)[:-4], "k.tar.bz2": flip(bz2.compress(tar), -3), "l.tar.zst": zstd(tar)[:-3], "m.tar.zst": flip(zstd(tar), -2)}
    with Tree({**{f"good/{n}": d for n, d in good.items()}, **{f"bad/{n}": d for n, d in bad.items()}}) as tree:
        done = tree.run("audit", *ARGS, "--format", "tsv", "good")
        equal((done.out, done.returncode), ("".join(f"{name}\t{ROW}" for name in good), 1))
        done = tree.run("audit", *ARGS, "--format", "tsv", "bad")
        equal([line.split("\t")[0] for line in done.out.splitlines() if line.endswith("not-analysed")], list(bad))
        equal(done.returncode & 4, 4)
        for why in ("b.tar.gz: not analysed: truncated or damaged: incorrect data check\n", "c.tar.gz: not analysed: truncated or damaged: incorrect length check\n",
                    "e.tar.gz: not analysed: truncated or damaged: truncated gzip data\n"):
            contains(done.err, why)
        # the same as members of other archives, and as layers
        tree.put("outer.zip", zipped({f"good/{n}": d for n, d in good.items()} | {f"bad/{n}": d for n, d in bad.items()}))
        faults = {f["member"].split("!")[0] for f in facts(tree, "outer.zip")["files"] if f["fault"]}
        equal(sorted(faults), [f"bad/{name}" for name in bad])
        for name, data in (("good.tar", gz), ("bad.tar", flip(gz, -6))):
            tree.put(name, tarred({"blobs/sha256/" + "a" * 64: data, "manifest.json": json.dumps([{"Layers": ["blobs/sha256/" + "a" * 64]}]).encode()}))
            equal((name, tree.run("audit", *ARGS, name).returncode & 4), (name, 0 if name == "good.tar" else 4))


# --- images and roots -------------------------------------------------------------------------------------------------


def image(layers, order, docker=True, pack=lambda data: data):
    """An image whose layers, {name: members}, lie in the archive as given and are stacked in `order`."""
    blob = lambda name: f"blobs/sha256/{name * 64}"
    members = {"blobs/": None, "blobs/sha256/": None, **{blob(n): tarred(m, pack) for n, m in layers.items()}}
    manifest = {"schemaVersion": 2, "layers": [{"digest": "sha256:" + n * 64} for n in order]}
    if docker:
        members["manifest.json"] = json.dumps([{"Config": "c", "Layers": [blob(n) for n in order]}]).encode()
    else:
        members[blob("f")] = json.dumps(manifest).encode()
        members["index.json"] = json.dumps({"manifests": [{"digest": "sha256:" + "e" * 64, "platform": {"os": "unknown"}}, {"digest": "sha256:" + "f" * 64}]}).encode()
    return tarred(members)


def test_image_layers():
    lower = {"opt/": None, "opt/a.so": user(), "opt/gone.so": user(), "opt/new.so": user(), "srv/b.so": user(), "srv/keep/c.so": user(), "var/d.so": user()}
    upper = {"opt/.wh.gone.so": b"", "opt/new.so": compiled(OWNER), "srv/.wh..wh..opq": b"", "srv/e.so": user(), ".wh.var": b""}
    for docker in (True, False):
        for pack in (lambda data: data, gzip.compress):
            # The upper layer comes first in the archive; a third one is in no manifest.
            data = image({"b": upper, "a": lower, "c": {"never.so": user()}}, "ab", docker, pack)
            with Tree({"image.tar": data}) as tree:
                log = facts(tree, "image.tar")
                equal([f["member"] for f in log["files"] if not f["fault"]], ["opt/new.so", "srv/e.so", "opt/a.so"])
                equal([f["fault"] for f in log["files"] if f["fault"]], [])
                equal(log["roots"][0]["kind"], "root")
                equal(rows(tree, "image.tar"), f"image.tar\t{ROW}image.tar\tdsv3_router_gemm\tprovides\n")


def test_image_faults():
    with Tree({"a.tar": image({"a": {"x.so": user()}}, "ab"), "b.tar": tarred({"index.json": b"{", "blobs/sha256/" + "a" * 64: tarred({"x.so": user()})})}) as tree:
        contains(tree.run("audit", *ARGS, "a.tar").err, f"a.tar: not analysed: an image whose layer blobs/sha256/{'b' * 64} is not in the archive\n")
        done = tree.run("audit", *ARGS, "--format", "tsv", "b.tar")
        equal(done.out, f"b.tar\t-\tnot-analysed\nb.tar\t{ROW}")
        contains(done.err, "has no manifest")


def test_image_that_lies():
    """Counts, rings and sizes that would cost without end."""
    layer = {"blobs/sha256/a": tarred({"x.so": user()})}
    names = json.dumps([{"Layers": ["blobs/sha256/a"] + ["no"] * 20000}]).encode()
    ring = lambda name: b'{"manifests":[' + b",".join([b'{"digest":"sha256:%s"}' % name] * 30000) + b"]}"
    files = {"names.tar": tarred({**layer, "manifest.json": names}), "many.tar": tarred({f"blobs/{i}": bytes(1024) for i in range(10001)}),
             "ring.tar": tarred({"index.json": ring(b"b"), **{f"blobs/sha256/{a}": ring(b) for a, b in (("b", b"c"), ("c", b"d"), ("d", b"b"))}}),
             "text.tar": tarred({f"blobs/{i}": b"{" + b" " * 4194303 for i in range(17)}, lambda data: gzip.compress(data, 1))}
    with Tree(files) as tree:
        start = time.monotonic()
        done = tree.run("audit", *ARGS, "--format", "tsv", "--limit", "ratio=1000000", *files)
        equal(done.out, f"many.tar\t-\tnot-analysed\nnames.tar\t-\tnot-analysed\nnames.tar\t{ROW}ring.tar\t-\tnot-analysed\ntext.tar\t-\tnot-analysed\n")
        for line in ("names.tar: not analysed: an image that claims more than 10000 layers", "names.tar: not analysed: an image whose layer no (and 9998 more) is not in the archive",
                     "many.tar: not analysed: an archive of more than 10000 layers", "text.tar: not analysed: its documents and caches have more than 64 MiB"):
            contains(done.err, line)
        equal(time.monotonic() - start < 60, True)


def test_image_by_crane():
    """The first member is sha256:HASH, the configuration; layers are HASH.tar.gz."""
    one, two = "1" * 64, "2" * 64
    manifest = json.dumps([{"Config": "sha256:" + "c" * 64, "RepoTags": None, "Layers": [f"{one}.tar.gz", f"{two}.tar.gz"]}]).encode()
    members = {"sha256:" + "c" * 64: b'{"rootfs": {}}', f"{one}.tar.gz": tarred({"a.so": user(), "b.so": user()}, gzip.compress),
               f"{two}.tar.gz": tarred({".wh.a.so": b""}, gzip.compress), "manifest.json": manifest}
    with Tree({"image.tar": tarred(members)}) as tree:
        log = facts(tree, "image.tar")
        equal(([f["member"] for f in log["files"]], log["roots"][0]["kind"]), (["b.so"], "root"))
        for name, data in members.items():
            tree.put(f"folder/{name}", data)
        log = facts(tree, "folder")
        equal(([f["member"] for f in log["files"]], log["roots"][0]["kind"]), (["b.so"], "root"))


def test_image_in_a_folder():
    """As docker save and OCI tools unpack it; also in a folder with other files, which stays one of this machine."""
    lower, upper = {"opt/a.so": user(), "opt/gone.so": user()}, {"opt/.wh.gone.so": b""}
    for docker in (True, False):
        with Tree() as tree:
            with tarfile.open(fileobj=io.BytesIO(image({"b": upper, "a": lower}, "ab", docker, gzip.compress))) as archive:
                archive.extractall(tree.path / "img", filter="data")
            for given in ("img", "img/", tree.path / "img"):
                log = facts(tree, given)
                equal(([f["member"] for f in log["files"]], log["roots"][0]["kind"]), (["opt/a.so"], "root"))
                equal(rows(tree, given), f"{given}\t{ROW}")
            equal(rows(tree), f"img\t{ROW}")
            tree.put("x.so", user())
            log = facts(tree)
            equal(([(f["path"], f["member"]) for f in log["files"]], log["roots"][0]["kind"]), ([("img", "opt/a.so"), ("x.so", None)], "files"))
            (tree.path / "img/blobs/sha256" / ("b" * 64)).write_bytes(b"\x1f\x8bno layer")
            done = tree.run("audit", *ARGS, "--format", "tsv", "img")
            contains(done.err, f"img!blobs/sha256/{'b' * 64}: not analysed: truncated or damaged: ")
            equal(done.returncode & 4, 4)
    layers = '[{"Layers": ["a.tar"]}]'  # which is not there
    with Tree({"app/manifest.json": layers, "app/x.so": user(), "web/index.json": '{"manifests": []}', "web/x.so": user(), "out/x.so": user()}) as tree:
        (tree.path / "out/manifest.json").symlink_to(tree.path / "app/manifest.json")
        equal(rows(tree), f"app/x.so\t{ROW}out/x.so\t{ROW}web/x.so\t{ROW}")
    with Tree({"web/manifest.json": '{"name": "app"}', "web/index.json": "{}", "web/blobs/1": "x", "web/x.so": user(), "list/manifest.json": "[1]", "list/index.json": "no json", "list/x.so": user()}) as tree:
        equal(rows(tree), f"list/x.so\t{ROW}web/x.so\t{ROW}")


def test_hard_links():
    """One file, several names: it is there as long as one of them is seen, also from a layer above."""
    lower = {"usr/": None, "usr/a.so": user(), "usr/b.so": ("usr/a.so",), "usr/c.so": ("usr/b.so",), "w.whl": zipped({"x.so": user()}), "v.whl": ("w.whl",)}
    for upper, want in (({}, ["usr/a.so", "w.whl!x.so"]), ({"usr/.wh.a.so": b"", ".wh.w.whl": b""}, ["usr/b.so", "v.whl!x.so"]),
                        ({"usr/.wh.a.so": b"", "usr/.wh.b.so": b"", "usr/./d/../.wh.c.so": b"", ".wh.v.whl": b""}, ["w.whl!x.so"]),
                        ({"opt/d.so": ("usr/a.so",), ".wh.usr": b""}, ["opt/d.so", "w.whl!x.so"])):
        with Tree({"image.tar": image({"a": lower, "b": upper}, "ab")}) as tree:
            equal(([f["member"] for f in facts(tree, "image.tar")["files"]]), want)
    library = {"usr/lib/libown.so.1.2": compiled(OWNER, "-Wl,-soname,libown.so.1"), "usr/lib/libown.so.1": ("usr/lib/libown.so.1.2",), "app.so": needing("libown.so.1", "-Wl,-rpath,/usr/lib")}
    for data in (tarred(library), image({"a": library, "b": {"usr/lib/.wh.libown.so.1.2": b""}}, "ab")):
        with Tree({"x.tar": data}) as tree:
            equal([(n["state"], n["place"][:16]) for f in facts(tree, "x.tar")["files"] for n in f["needed"]], [("found", "usr/lib/libown.s")])


def test_archives_in_a_folder_answer_nobody():
    """An old wheel that lies in an environment is not installed; wheels that lie together are for each other."""
    old = zipped({"sgl_kernel-0.3.21.dist-info/METADATA": b"", "sgl_kernel/x.so": compiled(OWNER), "torch-2.0.dist-info/METADATA": b""})
    files = {"site/sglang_kernel-0.4.8.dist-info/METADATA": "", "site/pkg/_C.so": user(), "cache/sgl_kernel-0.3.21-py3-none-any.whl": old}
    with Tree(files) as tree:
        equal([v for v in verdicts(tree) if v.startswith("site")], ["site/pkg/_C.so: shim dsv3_router_gemm"])
        contains(tree.run("audit", ".").out, "against kernel 0.4.8 (sglang-kernel) and torch 2.0: 0 alive, 1 of the shim")
        tree.put("cache/user.whl", zipped({"pkg/_C.so": user()}))
        equal([v for v in verdicts(tree, "cache") if "user" in v], ["user.whl: alive dsv3_router_gemm"])
        contains(tree.run("audit", "cache").out, "against kernel 0.3.21 (sgl-kernel, not installed but in an archive)")


def test_two_kernels():
    """The distribution has another name since 0.4, so an upgrade can leave both."""
    names = ("sgl_kernel-0.3.21", "sglang_kernel-0.4.8", "sglang_kernel-0.4.8")
    for order in (names, names[::-1]):
        with Tree({f"{i}/{name}.dist-info/METADATA": "" for i, name in enumerate(order)} | {"x.so": user()}) as tree:
            contains(tree.run("audit", ".").out, "against kernel 0.4.8 (sglang-kernel; sgl-kernel 0.3.21 is there too)")


def test_nothing_of_a_file_acts_on_a_terminal():
    data = compiled(HEAD + 'extern "C" int puts(const char *); void f() { puts("x"); }', "-lc").replace(b"GLIBC_2.2.5", b"GLIBC_2\x1b[1m")
    with Tree({"x.so": data, "torch-\x1b[2J.dist-info/METADATA": ""}) as tree:
        done = tree.run("audit", "--kernel", "0.4.4", ".").out  # no verdict, but the version that is lacking
        equal("\x1b" in done, False)
        contains(done, "needs glibc 2\\x1b[1m")
        contains(done, "and torch \\x1b[2J")


def test_archives_in_a_folder_are_no_files_of_it():
    """What a layer or wheel in a folder has answers no library of that folder."""
    lib = compiled(OWNER, "-Wl,-soname,libown.so.3")
    with Tree({"root/etc/os-release": "", "root/app/a.so": needing("libown.so.3", "-Wl,-rpath,/opt"), "root/x.tar": tarred({"opt/libown.so.3": lib, "etc/ld.so.cache": b"x"})}) as tree:
        log = facts(tree, "root")
        equal([n["state"] for f in log["files"] if f["path"] == "app/a.so" for n in f["needed"]], ["missing"])


def test_old_image_and_its_libraries():
    """HASH/layer.tar with a link to a layer that is there already; libraries are found in the image, not here."""
    base = {"usr/lib/libkernels.so.1": compiled(OWNER, "-Wl,-soname,libkernels.so.1"), "lib": "usr/lib", "usr/lib/libm.so.6": "libkernels.so.1"}
    top = {"app/user.so": user("-Wl,--no-as-needed,-rpath,/opt/links", "-L.", "-Wl,--allow-shlib-undefined"), "opt/links": "../lib"}
    one, two = "1" * 64, "2" * 64
    manifest = json.dumps([{"Layers": [f"{one}/layer.tar", f"{two}/layer.tar"]}]).encode()
    with Tree({"image.tar": tarred({one + "/": None, f"{one}/layer.tar": tarred(base), f"{two}/layer.tar": tarred(top), "manifest.json": manifest})}) as tree:
        equal(verdicts(tree, "image.tar"), ["image.tar: note dsv3_router_gemm", "image.tar: alive dsv3_router_gemm"])


def needing(library, *options):
    """user.so with NEEDED library, which defines the name."""
    with Tree({library: compiled(OWNER, f"-Wl,-soname,{library}")}) as tree:
        return compiled(USER, "-Wl,--no-as-needed", f"-L{tree.path}", f"-l:{library}", *options)


def test_where_a_library_is_found():
    lib = compiled(OWNER, "-Wl,-soname,libown.so.3")
    with Tree({"site/p/user.so": needing("libown.so.3", "-Wl,-rpath,$ORIGIN/../libs"), "site/libs/libown.so.3": lib,
               "other/user.so": needing("libown.so.3"), "other/lib/libown.so.3": lib, "none/user.so": needing("libown.so.3", "-Wl,-rpath,/nowhere"),
               "w.whl": zipped({"p/user.so": needing("libown.so.3", "-Wl,-rpath,$ORIGIN/../libs"), "libs/libown.so.3": lib}), "v.whl": zipped({"user.so": needing("libown.so.3")})}) as tree:
        state = lambda path: [(n["state"], n["place"] if "place" in n else n["searched"]) for f in facts(tree, path)["files"] for n in f["needed"]]
        equal(state("site"), [("found", "libs/libown.so.3")])
        equal(state("other"), [("present", "lib/libown.so.3")])
        equal(state("none")[0][0], "missing")
        equal(state("none")[0][1].startswith("RUNPATH /nowhere, the cache of ld.so, /lib"), True)
        equal(state("w.whl"), [("found", "libs/libown.so.3")])
        equal(state("v.whl"), [("outside", None)])
        equal(verdicts(tree, "none"), ["user.so: shim dsv3_router_gemm", "user.so: missing-library libown.so.3"])
        tree.put("py/lib/libpython3.so", lib)  # as Pythons that can be moved are linked
        for needed, want in (("$ORIGIN/../lib/libpython3.so", ("found", "lib/libpython3.so")), ("${ORIGIN}/libpython3.so", ("missing", f"{tree.path}/py/bin/libpython3.so"))):
            with Tree({"x.so": compiled(OWNER, f"-Wl,-soname,{needed}")}) as made:
                tree.put("py/bin/python", compiled(USER, "-Wl,--no-as-needed", made.path / "x.so"))
            equal(state("py"), [want])
        tree.put("other/user.so", user())
        contains(tree.run("audit", "other").out, "nothing that it needs loads that, so it has to be loaded with global scope before")


def test_container_root():
    """Absolute links and folders are those of the root; nothing outside of it is looked at."""
    lib = compiled(OWNER, "-Wl,-soname,libown.so.3")
    with Tree({"root/etc/os-release": "", "root/opt/real/libown.so.3": lib, "root/app/a.so": needing("libown.so.3", "-Wl,-rpath,/opt/link"),
               "root/app/b.so": needing("libout.so.1"), "out/libout.so.1": compiled(OWNER, "-Wl,-soname,libout.so.1"), "root/proc/x.so": user()}) as tree:
        root = tree.path / "root"
        (root / "opt/link").symlink_to("/opt/real")
        (root / "usr").mkdir()
        (root / "usr/lib").symlink_to(tree.path / "out")
        (root / "loop").symlink_to("loop")
        log = facts(tree, "root")
        equal({f["path"]: [(n["state"], n.get("place")) for n in f["needed"]] for f in log["files"]},
              {"app/a.so": [("found", "opt/real/libown.so.3")], "app/b.so": [("missing", None)], "opt/real/libown.so.3": []})
        (root / "etc/ld.so.conf").write_text("/srv/own\n")
        (root / "srv/own").mkdir(parents=True)
        os.rename(root / "opt/real/libown.so.3", root / "srv/own/libown.so.3")
        if subprocess.run(["ldconfig", "-r", root], capture_output=True).returncode == 0:
            states = {f["path"]: [n["state"] for n in f["needed"]] for f in facts(tree, "root")["files"]}
            equal(states["app/a.so"], ["found"])


def test_links():
    """An environment that is linked to a cache of packages; a root that is a link itself."""
    with Tree({"cache/u.so": needing("libown.so.3", "-Wl,-rpath,$ORIGIN/../libs"), "cache/o.so": compiled(OWNER, "-Wl,-soname,libown.so.3"), "far/x.so": user()}) as tree:
        for folder in ("real/p", "real/libs"):
            (tree.path / folder).mkdir(parents=True)
        for name, target in {"real/p/user.so": "../../cache/u.so", "real/libs/libown.so.3": "../../cache/o.so", "real/again.so": "libs/libown.so.3", "real/p/twice.so": "../../cache/u.so",
                             "real/far": "../far", "real/dead.so": "nowhere", "real/self": ".", "site": "real"}.items():
            (tree.path / name).symlink_to(target)
        log = facts(tree, "site")
        equal(sorted((f["path"], f["outside"]) for f in log["files"]), [("again.so", False), ("p/twice.so", False)])
        equal([n["state"] for f in log["files"] for n in f["needed"]], ["found"])
        equal(log["leftOut"], ["site/far (a link to a folder elsewhere; name its target as PATH to include it)"])
        contains(tree.run("audit", "site").out, "left out: site/far (")


def test_unreadable():
    with Tree({"a/x.so": user(), "b.so": user(), "c.so": user()}) as tree:
        os.chmod(tree.path / "a", 0)
        os.chmod(tree.path / "b.so", 0)
        os.chmod(tree.path, 0o755)
        try:  # root may read everything
            done = tree.run("audit", *ARGS, "--format", "tsv", ".", **({} if os.getuid() else {"user": 65534, "group": 65534, "extra_groups": []}))
        except PermissionError as reason:
            raise Skip(f"another user cannot run it: {reason}")
        os.chmod(tree.path / "a", 0o755)
        equal(done.out, f"a\t-\tnot-analysed\nb.so\t-\tnot-analysed\nc.so\t{ROW}")
        equal((done.returncode, done.err.count("Permission denied")), (5, 2))


# --- what is said -----------------------------------------------------------------------------------------------------


def test_the_environment_answers():
    with Tree({"site/user.so": user()}) as tree:
        equal(verdicts(tree, "site"), ["user.so: shim dsv3_router_gemm"])
        contains(tree.run("audit", "site").out, "libsgl_kernel_compat.so has it (stage warn), and is not in what was audited\n")
        tree.put("site/libsgl_kernel_compat.so.0", SHIM.read_bytes())
        contains(tree.run("audit", "site").out, "libsgl_kernel_compat.so.0 has it (stage warn); nothing that it needs loads that")
        tree.put("site/libsgl_kernel_jit.so.0", (SHIM.parent / "libsgl_kernel_jit.so").read_bytes())
        tree.put("site/sgl_kernel/common_ops.so", compiled(OWNER))
        tree.put("site/sglang_kernel-0.4.4.dist-info/METADATA", "")
        done = tree.run("audit", "site")
        contains(done.out, "against kernel 0.4.4 (sglang-kernel)")
        contains(done.out, "alive dsv3_router_gemm")
        equal(done.returncode, 0)
        done = tree.run("audit", "--kernel", "0.4.8", "site")  # the kernel wheel will be another one
        contains(done.out, "shim dsv3_router_gemm")
        equal(done.returncode, 1)
        contains(tree.run("audit", "--kernel", "0.4.4", "site").out, "alive dsv3_router_gemm")


def test_kernel_without_the_operator():
    uses = compiled('extern "C" const char *name() { return "sgl_kernel::rmsnorm"; }\n')
    with Tree({"site/user.so": uses, "site/sglang_kernel-0.4.6.dist-info/METADATA": ""}) as tree:
        equal(verdicts(tree, "site"), ["user.so: unknown-provider rmsnorm"])
        contains(tree.run("audit", "site").out, "nothing that was audited registers it; by the catalog kernel 0.4.10 has the operator; whether 0.4.6 had it already is not known")
        equal(tree.run("audit", "site").returncode, 3)
        equal(tree.run("audit", *ARGS, "site").returncode, 0)
        for text in ("rmsnorm(Tensor! a) -> ()", "rmsnorm(Tensor! a)-> ()", "rmsnorm"):  # torch makes the schema of the second one itself
            tree.put("site/sgl_kernel/common_ops.so", compiled('extern "C" void take(const char *);\nextern "C" void init() { take("sgl_kernel"); take("%s"); }\n' % text))
            equal(verdicts(tree, "site"), ["user.so: alive rmsnorm"])


def test_a_name_alone_registers_nothing_that_is_gone():
    """The name of an operator that left stays in the messages of a function that did not."""
    uses = compiled('extern "C" const char *name() { return "sgl_kernel::top_k_mask_logits"; }\n')
    kernel = compiled('extern "C" void take(const char *);\nextern "C" void init() { take("sgl_kernel"); take("top_k_mask_logits"); }\n')
    with Tree({"site/user.so": uses, "site/sgl_kernel/common_ops.so": kernel, "site/sglang_kernel-0.4.0.dist-info/METADATA": ""}) as tree:
        equal(verdicts(tree, "site"), ["user.so: alive top_k_mask_logits"])
        os.rename(tree.path / "site/sglang_kernel-0.4.0.dist-info", tree.path / "site/sglang_kernel-0.4.1.dist-info")
        equal(verdicts(tree, "site"), ["user.so: removed top_k_mask_logits"])


def test_weak_reference_and_the_shim():
    weak = compiled(USER.replace("void dsv3", "__attribute__((weak)) void dsv3"))
    shim = compiled(OWNER, "-Wl,-soname,libsgl_kernel_compat.so.1")
    with Tree({"w.so": weak, "libsgl_kernel_compat.so.1": shim}) as tree:
        done = tree.run("audit", *ARGS, ".")
        contains(done.out, "optional dsv3_router_gemm")
        contains(done.out, "libsgl_kernel_compat.so.1 has it")
        equal(done.returncode, 0)
        tree.put("w.so", user())
        equal(tree.run("audit", *ARGS, ".").returncode, 1)


def test_the_shim_without_a_kernel():
    """The real shim resolves the C++ functions that it has no kernel for, and a call throws; it knows their schemas, too."""
    source = """
namespace at { class Tensor { public: Tensor(const Tensor &); ~Tensor(); void *p; }; }
at::Tensor awq_dequantize(at::Tensor, at::Tensor, at::Tensor)%s;
extern "C" const char *text() { return "sgl_kernel::awq_dequantize"; }
void f(at::Tensor &t) { awq_dequantize(t, t, t); }
"""
    left = "awq_dequantize (_Z14awq_dequantizeN2at6TensorES0_S0_): left sgl_kernel in 0.4.7 (C++ function, #32114, 2026-09-10); "
    users = {"user.so": compiled(source % ""), "weak.so": compiled(source % " __attribute__((weak))")}
    with Tree({**users, "libsgl_kernel_compat.so.0": SHIM.read_bytes()}) as tree:
        done = tree.run("audit", "--kernel", "0.4.8", ".")
        contains(done.out, f"removed {left}libsgl_kernel_compat.so.0 only lets the file load, a call throws;")
        contains(done.out, f"optional {left}the reference is weak, so the file loads without it; but libsgl_kernel_compat.so.0 makes it not NULL, and a call throws")
        contains(done.out, "the shim: a call throws, it has no kernel for it, which left sgl_kernel in 0.4.7")
        equal(done.out.count("removed awq_dequantize (string sgl_kernel::awq_dequantize)"), 2)


def test_kernel_without_the_function():
    """A kernel wheel that has the operator, and exports no C++ function of these types (torch's stable ABI)."""
    source = USER.replace("dsv3_router_gemm(T &o, const T &a, const T &b)", "moe_sum(T &o, T &a)").replace("dsv3_router_gemm(o, a, a)", "moe_sum(o, o)")
    kernel = 'extern "C" void take(const char *);\nextern "C" void init() { take("sgl_kernel"); take("moe_sum(Tensor input, Tensor! output) -> ()"); }\n'
    with Tree({"site/user.so": compiled(source), "site/sgl_kernel/common_ops.so": compiled(kernel)}) as tree:
        equal(verdicts(tree, "site"), ["user.so: alive moe_sum"])
        tree.put("site/sglang_kernel-0.4.4.dist-info/METADATA", "")
        equal(verdicts(tree, "site"), ["user.so: unknown-provider moe_sum"])
        contains(tree.run("audit", "site").out, "nothing that was audited exports it; by the catalog kernel 0.4.10 has it; whether 0.4.4 had it already is not known; sgl_kernel/common_ops.so registers the operator of that name, with other C++ types or a hidden function\n")


def test_removed_without_shim_and_operators():
    source = HEAD.replace("dsv3_router_gemm", "gptq_shuffle").replace("const T &a, const T &b", "long") .replace("T &o", "T") + \
        'void use(T *o) { extern void gptq_shuffle(T, T, long); }\nextern "C" const char *names() { return "sgl_kernel::gptq_shuffle"; }\nextern "C" const char *more() { return "sgl_kernel::my_own"; }\n'
    registers = 'extern "C" void take(const char *);\nextern "C" void init() { take("sgl_kernel"); take("my_own(Tensor a, int b=1) -> Tensor"); take("gptq_shuffle(Tensor! a) -> ()"); }\n'
    with Tree({"a.so": compiled(source)}) as tree:
        done = tree.run("audit", "--kernel", "0.4.8", ".")
        contains(done.out, "removed gptq_shuffle (string sgl_kernel::gptq_shuffle): left sgl_kernel in 0.4.7 (torch operator, #32114, 2026-09-10); no replacement")
        contains(done.out, "unknown-provider sgl_kernel::my_own: an operator that the catalog does not know")
        equal(done.returncode, 3)
        tree.put("b.so", compiled(registers))
        equal(verdicts(tree), ["a.so: alive gptq_shuffle", "a.so: alive sgl_kernel::my_own"])
        equal([sorted(f["operators"]) for f in facts(tree)["files"]], [[], ["gptq_shuffle(Tensor! a) -> ()", "my_own(Tensor a, int b=1) -> Tensor"]])


def test_operators_of_a_namespace_in_code():
    """A short std::string is made of constants in the code; x86-64 moves eight bytes at once."""
    if os.uname().machine != "x86_64":
        raise Skip("another machine")
    source = 'namespace torch { struct Library { Library(const char *); }; }\nextern "C" void take(const char *, long);\n' + \
        'extern "C" void init() { torch::Library library("x"); take("my_own(Tensor a) -> Tensor", %s); }\n'
    with Tree({"a.so": compiled(source % "0x6e72656b5f6c6773"), "b.so": compiled(source % "0x6e72656b5f6c6774")}) as tree:
        equal([f["operators"] for f in facts(tree)["files"]], [["my_own(Tensor a) -> Tensor"], []])


def test_torch():
    old = "void _ZN5torch3jit17parseSchemaOrNameERKSsb"
    new = "_ZN5torch3jit17parseSchemaOrNameERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEb"
    torch = compiled(f'extern "C" void {new}() {{}}\nextern "C" void _ZNK2at6Tensor3dimEv() {{}}\nextern "C" void aoti_torch_get_sizes() {{}}\n', "-Wl,-soname,libtorch_cpu.so")
    call = lambda *names: compiled("".join(f'extern "C" void {n}();\n' for n in names) + 'extern "C" void use() {' + "".join(f"{n}();" for n in names) + "}\n")
    with Tree({"libtorch_cpu.so": torch, "good.so": call(new, "_ZNK2at6Tensor3dimEv"), "old.so": call(old.split()[1]), "gone.so": call("_ZNK3c106SymInt6sym_neERKS0_"),
               "cuda.so": call("_ZN3c104cuda14current_deviceEv"), "stable.so": call("aoti_torch_get_dim"), "own.so": call("aoti_torch_get_sizes"), "nocuda.so": call("aoti_torch_get_current_cuda_stream"), "torch-2.11.0.dist-info/METADATA": ""}) as tree:
        text = tree.run("audit", ".").out
        contains(text, "torch-abi _ZN5torch3jit17parseSchemaOrNameERKSsb: torch 2.11.0 was built with the new C++ ABI of std::string, this file with the old one")
        contains(text, "torch-abi _ZNK3c106SymInt6sym_neERKS0_: torch 2.11.0 does not export it: this file was built against another release of torch")
        contains(text, "torch-abi _ZN3c104cuda14current_deviceEv: torch 2.11.0 has no CUDA part (no libc10_cuda.so)")
        contains(text, "torch-abi aoti_torch_get_dim: torch 2.11.0 does not export it: this file was built against another release of torch")
        contains(text, "torch-abi aoti_torch_get_current_cuda_stream: torch 2.11.0 has no CUDA part")
        equal("good.so" in text or "aoti_torch_get_sizes" in text, False)
        of = {f["path"]: f["torch"] for f in facts(tree)["files"]}
        equal(of["old.so"], {"cxxSymbols": 1, "cxxAbi": "old", "stableSymbols": 0})
        equal(of["good.so"], {"cxxSymbols": 2, "cxxAbi": "new", "stableSymbols": 0})
        equal(of["stable.so"], {"cxxSymbols": 0, "cxxAbi": None, "stableSymbols": 1})
        equal(tree.run("audit", ".").returncode, 3)


def versioned(version, *options):
    """A libversions.so.1 whose function has this version."""
    with Tree({"map": version + " { global: versioned; };\n"}) as tree:
        return compiled('extern "C" void versioned() {}\n', "-Wl,-soname,libversions.so.1", f"-Wl,--version-script={tree.path}/map", *options)


def test_versions_of_libraries():
    with Tree({"libversions.so.1": versioned("VERS_2.5")}) as tree:
        call = lambda word, *options: compiled(f'extern "C" {word} void versioned();\nextern "C" void use() {{ versioned(); }}\n', f"-L{tree.path}", "-l:libversions.so.1", "-Wl,-rpath,$ORIGIN", *options)
        one = call("")
    with Tree({"a/one.so": one, "a/libversions.so.1": versioned("VERS_2.5"), "b/one.so": one, "b/libversions.so.1": versioned("VERS_2.4"),
               "c/one.so": one, "c/libversions.so.1": compiled('extern "C" void versioned() {}\n', "-Wl,-soname,libversions.so.1")}) as tree:
        for folder, want in (("a", []), ("b", ["one.so: unknown-provider libversions.so.1"]), ("c", [])):
            equal((folder, verdicts(tree, folder)), (folder, want))
            equal(tree.run("audit", folder).returncode, 3 if want else 0)
        contains(tree.run("audit", "b").out, "unknown-provider libversions.so.1: libversions.so.1 lacks version VERS_2.5\n")
        equal(rows(tree, "b"), "")
        tree.put("b/lib/libversions.so.1", versioned("VERS_2.5"))  # the program may load this one
        equal(verdicts(tree, "b"), [])
    patch = lambda data: data.replace(b"GLIBCXX_3.4\0", b"GLIBCXX_9.9\0")  # its hash is not looked at
    uses = compiled('namespace std { struct ios_base { struct Init { Init(); }; }; }\nextern "C" void use() { std::ios_base::Init x; }\n', "-Wl,--no-as-needed", "-lstdc++")
    with Tree({"gv.so": patch(uses)}) as tree:
        done = tree.run("audit", ".")
        contains(done.out, " lacks version GLIBCXX_9.9\n")
        equal(done.returncode, 3)
        tree.put("gv.so", uses)
        equal(tree.run("audit", ".").returncode, 0)


def test_unknown_provider_needs_all_libraries():
    source = 'namespace own { void nobody(); }\nextern "C" void plugin();\nextern "C" void use() { own::nobody(); plugin(); }\n'
    with Tree({"a.so": compiled(source, "-Wl,--no-as-needed", "-lc"), "b.so": compiled(source), "c.so": compiled(source, "-Wl,--no-as-needed", "-lc", "-Wl,-rpath,/x")}) as tree:
        equal(verdicts(tree), ["a.so: unknown-provider _ZN3own6nobodyEv", "c.so: unknown-provider _ZN3own6nobodyEv"])


NOBODY = 'namespace own { void nobody(); }\nextern "C" void use() { own::nobody(); }\n'
SOMEBODY = 'namespace own { void nobody() {} }\n'
AGAINST_C = ("-Wl,--no-as-needed", "-lc")


def linked(source, libraries, *options):
    """A library that needs those, {name: bytes}, beside it."""
    with Tree(libraries) as tree:
        return compiled(source, "-Wl,--no-as-needed,--allow-shlib-undefined,-rpath,$ORIGIN", f"-L{tree.path}", *(f"-l:{name}" for name in libraries), *options)


def test_who_is_loaded_with_a_file():
    """An exporter answers when it is loaded with the file or before it, and not because it lies there."""
    some, asks = compiled(SOMEBODY, "-Wl,-soname,libsome.so"), compiled(NOBODY, *AGAINST_C, "-Wl,-soname,libasks.so")
    unknown = lambda path: [f"{path}: unknown-provider _ZN3own6nobodyEv"]
    module = 'extern "C" void PyInit__M() {}\n'

    def check(files, want):
        with Tree(files) as tree:
            equal(verdicts(tree), want)
            return tree.run("audit", ".").out
    text = check({"libasks.so": asks, "libsome.so": some}, unknown("libasks.so"))
    contains(text, "unknown-provider _ZN3own6nobodyEv: libsome.so exports it, but nothing loads that with this file or before it\n")
    check({"libasks.so": linked(NOBODY, {"libsome.so": some}, "-lc"), "libsome.so": some}, [])
    deep = linked("", {"libsome.so": some}, "-Wl,-soname,libdeep.so")
    check({"libasks.so": linked(NOBODY, {"libdeep.so": deep}, "-lc"), "libdeep.so": deep, "libsome.so": some}, [])
    check({"libasks.so": asks, "libboth.so": linked("", {"libasks.so": asks, "libsome.so": some}), "libsome.so": some}, [])
    check({"libasks.so": asks, "libboth.so": linked(SOMEBODY, {"libasks.so": asks})}, [])
    check({"libasks.so": asks, "libother.so": linked("", {"libsome.so": some}), "libsome.so": some}, unknown("libasks.so"))
    # packages
    check({"p/libasks.so": asks, "p/lib/libsome.so": some}, [])
    check({"p/libasks.so": asks, "q/libsome.so": some}, unknown("p/libasks.so"))
    check({"x/site-packages/p/libasks.so": asks, "x/site-packages/q/libsome.so": some}, unknown("x/site-packages/p/libasks.so"))
    check({"x/site-packages/p/libasks.so": asks, "x/site-packages/p/q/libsome.so": some}, [])
    # programs
    main = compiled(SOMEBODY + "int main() {}\n", "-pie", "-rdynamic", "-fPIE", *AGAINST_C, program=True)
    check({"lib/libasks.so": asks, "bin/host": main}, [])
    asks_module = compiled(NOBODY + module, *AGAINST_C)
    check({"lib/_M.so": asks_module, "bin/host": main}, unknown("lib/_M.so"))
    check({"lib/_M.so": asks_module, "bin/python3.12": main}, [])


def test_torch_is_more_than_its_namespaces():
    """The module of torch for Python, caffe2 and c10d are torch's as well: its release, nobody's function."""
    names = ["_Z16THPVariable_WrapN2at10TensorBaseE", "_ZN4c10d12ProcessGroup7barrierEv", "_ZN6caffe28TypeMeta2idEv"]
    source = 'extern "C" void PyInit__C() {}' + "".join(f'extern "C" void {n}(); void f{i}() {{ {n}(); }}' for i, n in enumerate(names))
    with Tree({"torch/lib/libtorch_cpu.so": compiled(OWNER, "-Wl,-soname,libtorch_cpu.so"), "pkg/_C.so": compiled(source)}) as tree:
        equal([v for v in verdicts(tree) if "pkg" in v], [f"pkg/_C.so: torch-abi {n}" for n in names])
        equal("THP" in rows(tree), False)  # the contract's rows are of at::, c10:: and torch:: alone


def test_torch_is_loaded_first():
    torch = compiled('extern "C" void _ZNK2at6Tensor3dimEv() {}\n', "-Wl,-soname,libtorch_cpu.so")
    some = compiled(SOMEBODY, "-Wl,-soname,libsome.so")
    own = linked("", {"libsome.so": some}, "-Wl,-soname,libtorch_global_deps.so")
    uses = NOBODY + 'extern "C" void _ZNK2at6Tensor3dimEv();\nextern "C" void dim() { _ZNK2at6Tensor3dimEv(); }\n'
    files = {"torch/lib/libtorch_cpu.so": torch, "torch/lib/libtorch_global_deps.so": own, "nvidia/libsome.so": some}
    with Tree({**files, "p/_C.so": compiled(NOBODY, *AGAINST_C)}) as tree:
        equal(verdicts(tree), ["p/_C.so: unknown-provider _ZN3own6nobodyEv"])
        tree.put("p/_C.so", compiled(uses, *AGAINST_C))
        equal(verdicts(tree), [])
        tree.put("p/_C.so", compiled(NOBODY, *AGAINST_C))
        tree.put("p/_ops.so", compiled(uses, *AGAINST_C))  # the package uses torch
        equal(verdicts(tree), [])
        os.remove(tree.path / "torch/lib/libtorch_global_deps.so")
        equal(sorted(verdicts(tree)), [f"p/{name}.so: unknown-provider _ZN3own6nobodyEv" for name in ("_C", "_ops")])


def test_c_symbols_that_nothing_exports():
    """Of a Python module everything but Python's own; of another library what is of CUDA; of both no weak ones."""
    names = ("plugin", "PyLong_AsLong", "_Py_Dealloc", "THPVariableClass", "cudaMalloc", "ncclSend", "_ZN3own6nobodyEv")
    source = "".join(f'extern "C" void {n}();\n' for n in names) + 'extern "C" __attribute__((weak)) void cudaFree();\nextern "C" void PyInit__M() { cudaFree(); ' + "".join(f"{n}(); " for n in names) + "}\n"
    files = {"_M.abi3.so": compiled(source, "-Wl,--no-as-needed", "-lc"), "other.so": compiled(source, "-Wl,--no-as-needed", "-lc"), "alone/_M.so": compiled(source)}
    with Tree(files) as tree:
        cuda = ["_ZN3own6nobodyEv", "cudaMalloc", "ncclSend"]
        equal(verdicts(tree), [f"_M.abi3.so: unknown-provider {n}" for n in cuda + ["plugin"]] + [f"other.so: unknown-provider {n}" for n in cuda])
        equal(tree.run("audit", "other.so").returncode, 3)
        tree.put("lib/libnccl.so.2", compiled('extern "C" void ncclSend() {}\n'))
        contains(tree.run("audit", ".").out, "unknown-provider ncclSend: lib/libnccl.so.2 exports it, but nothing loads that with this file or before it")
        tree.put("lib/other.so", (tree.path / "other.so").read_bytes())
        equal([v for v in verdicts(tree) if "ncclSend" in v and "lib/" in v], [])


def test_releases_that_the_catalog_does_not_know():
    ops = lambda name: compiled('extern "C" const char *name() { return "sgl_kernel::%s"; }\n' % name)
    def said(name, kernel):
        with Tree({"a.so": ops(name)}) as tree:
            done = tree.run("audit", "--kernel", kernel, ".")
            return [line.split(": ", 1)[1] for line in done.out.splitlines() if "string" in line][0], done.returncode, done.err, tree.run("audit", "--kernel", kernel, "--format", "tsv", ".").out
    # came with 0.0.8.post1 on the CPU, and left there
    equal(said("rotary_position_embedding_cpu", "0.0.8")[:2], ("kernel 0.0.8 does not have it yet: it came with 0.0.8.post1", 3))
    equal(said("rotary_position_embedding_cpu", "0.1.5")[:2], ("kernel 0.1.5, built for CPU, has the operator", 0))
    text, status, _, tsv = said("rotary_position_embedding_cpu", "0.4.6")
    equal(text, "left sgl_kernel in 0.1.6 (torch operator of CPU, #6456, 2025-06-03); use torch.ops.sgl_kernel.rotary_embedding_cpu: with another signature.")
    equal((status, tsv), (3, "a.so\trotary_position_embedding_cpu\tstring\n"))
    # still there in the newest release that is known
    equal(said("rmsnorm", "0.4.10")[:3], ("kernel 0.4.10 has the operator", 0, ""))
    equal(said("rmsnorm", "0.4.2")[0], "kernel 0.4.10 has the operator; whether 0.4.2 had it already is not known")
    text, status, err, _ = said("rmsnorm", "0.9")
    equal((text, status), ("kernel 0.4.10, the newest that the catalog knows, has the operator; of 0.9 nothing is known", 0))
    equal(err, "sgl-migrate: kernel 0.9 is newer than 0.4.10, the newest that the catalog knows; later changes are missing\n")
    contains(said("gptq_shuffle", "0.9")[0], "left sgl_kernel in 0.4.7")
    # functions
    with Tree({"a.so": user(), "w.so": compiled(USER.replace("void dsv3", "__attribute__((weak)) void dsv3"))}) as tree:
        done = tree.run("audit", "--kernel", "0.0.2", ".")
        contains(done.out, "unknown-provider dsv3_router_gemm (_Z16dsv3_router_gemmRN2at6TensorERKS0_S3_): kernel 0.0.2 does not have it yet: it came with ")
        contains(done.out, "optional dsv3_router_gemm (")
        equal(done.returncode, 3)
        tree.put("libsgl_kernel_compat.so.1", compiled(OWNER, "-Wl,-soname,libsgl_kernel_compat.so.1"))
        contains(tree.run("audit", "--kernel", "0.0.2", ".").out, "shim dsv3_router_gemm (_Z16dsv3_router_gemmRN2at6TensorERKS0_S3_): kernel 0.0.2 does not have it yet: it came with ")


def test_symbols_are_those_of_readelf():
    library = subprocess.run(["gcc", "-print-file-name=libstdc++.so.6"], capture_output=True, text=True).stdout.strip()
    text = subprocess.run(["readelf", "--dyn-syms", "-W", library], capture_output=True, text=True, check=True).stdout
    want = {False: set(), True: set()}
    for line in text.splitlines():
        part = line.split()
        if len(part) >= 8 and part[0].rstrip(":").isdigit() and part[4] != "LOCAL" and part[5] in ("DEFAULT", "PROTECTED") and part[6] != "ABS":
            name, _, version = part[7].partition("@")
            want[part[6] == "UND"].add((name, version.lstrip("@") or None, part[4] == "WEAK"))
    with Tree() as tree:
        log = facts(tree, library)["files"][0]
        have = lambda key: {(s["name"], s["version"], s["weak"]) for s in log[key]}
        equal(have("exported") ^ want[False], set())
        equal(have("undefined") ^ want[True], set())
        dynamic = subprocess.run(["readelf", "-dnW", library], capture_output=True, text=True, check=True).stdout
        equal([n["name"] for n in log["needed"]], re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))
        equal(log["buildId"], re.search(r"Build ID: (\w+)", dynamic)[1])
        equal(log["soname"], "libstdc++.so.6")


def test_cuda_code():
    entry = lambda kind, arch, flags, payload: struct.pack("<HHIQIIHHI", kind, 257, 64, len(payload), len(payload), 0, 1, 8, arch) + bytes(8) + struct.pack("<QQQ", flags, 0, 0) + payload
    body = entry(2, 90, 1 << 20, b"c" * 24) + entry(2, 80, 0, b"c" * 8) + entry(1, 100, 0, b"p" * 16) + entry(2, 100, 1 << 21, b"")
    fat = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body
    source = 'asm(".section .nv_fatbin,\\"a\\"\\n.byte ' + ",".join(map(str, fat + bytes(8) + fat)) + '\\n");\n'
    with Tree({"a.so": compiled(source), "cut.so": compiled(source.replace(",".join(map(str, body[-40:])), "0"))}) as tree:
        equal([(c["arch"], c["kind"], c["count"]) for c in facts(tree, "a.so")["files"][0]["cudaCode"]],
              [("sm_80", "cubin", 2), ("sm_90a", "cubin", 2), ("sm_100f", "cubin", 2), ("compute_100", "ptx", 2)])
        equal(tree.run("audit", "cut.so").returncode, 0)


def test_forms_agree():
    with Tree({"a.so": user(), "x/b.whl": zipped({"_C.so": user(), "d/_D.so": compiled(OWNER)}), "cut.so": user()[:900], "w.so": compiled(USER.replace("void dsv3", "__attribute__((weak)) void dsv3"))}) as tree:
        log, sarif = facts(tree), json.loads(tree.run("audit", *ARGS, "--format", "sarif", ".").out)
        equal(sorted(f["verdict"] for f in log["findings"]), ["alive", "note", "optional", "shim"])
        one = sarif["runs"][0]
        equal(sorted(r["properties"]["verdict"] for r in one["results"]), sorted(f["verdict"] for f in log["findings"]))
        for result in one["results"]:
            equal(one["tool"]["driver"]["rules"][result["ruleIndex"]]["id"], result["ruleId"])
            equal(list(result["message"]), ["text"])
        equal([n["descriptor"]["id"] for n in one["invocations"][0]["toolExecutionNotifications"]], ["not-analysed"])
        equal((one["invocations"][0]["exitCode"], one["invocations"][0]["executionSuccessful"]), (log["exitStatus"], False))
        for form in ("text", "tsv", "json", "sarif"):
            outs = {(d.out, d.err) for d in (tree.run("audit", *ARGS, "--format", form, "-j", jobs, ".") for jobs in ("1", "4"))}
            equal(len(outs), 1)
        equal(rows(tree), "a.so\tdsv3_router_gemm\tneeds\ncut.so\t-\tnot-analysed\nw.so\tdsv3_router_gemm\tneeds-weak\nx/b.whl\tdsv3_router_gemm\tneeds\nx/b.whl\tdsv3_router_gemm\tprovides\n")
        contains(tree.run("audit", *ARGS, "--format", "tsv", "x", "a.so").out, "a.so\tdsv3_router_gemm\tneeds\nx/b.whl\t")


def test_command_line():
    with Tree({"a": "text"}) as tree:
        for args, says in ((["audit"], "audit needs at least one path"), (["audit", "none"], "none: No such file or directory"), (["audit", "--format", "xml", "."], "--format 'xml': text, tsv, json or sarif"),
                           (["audit", "--kernel", "new", "."], "--kernel 'new': not a release number"), (["audit", "--pid", "x"], "--pid 'x': the number"), (["audit", "--pid", "1", "."], "leave '.' out"),
                           (["audit", "--pid", "4194399"], "--pid 4194399: there is no such process"), (["audit", "/dev/null"], "neither a file nor a folder")):
            done = tree.run(*args)
            equal((args, done.returncode, done.out, done.err.count("\n")), (args, 8, "", 1))
            contains(done.err, says)
        equal(tree.run("audit", "a").returncode, 4)  # given by name, and not analysed
        equal((tree.run("audit", *ARGS, "--format", "tsv", ".").out, tree.run("audit", ".").returncode), ("", 0))
        contains(run("audit", "--help").out, "usage: sgl-migrate audit [")


def test_process():
    code = "import ctypes, sys, time; ctypes.CDLL(sys.argv[1], mode=1); ctypes.CDLL(sys.argv[2], mode=1); print(1, flush=True); time.sleep(60)"
    with Tree({"own.so": compiled(OWNER), "user.so": user()}) as tree:
        process = subprocess.Popen([sys.executable, "-c", code, tree.path / "own.so", tree.path / "user.so"], stdout=subprocess.PIPE)
        try:
            process.stdout.readline()
            log = json.loads(run("audit", "--format", "json", "--pid", process.pid).out)
            name = lambda f: os.path.basename(log["files"][f["file"]]["path"])
            equal([(name(f), f["verdict"]) for f in log["findings"] if f["symbol"]], [("own.so", "note"), ("user.so", "alive")])
            (tree.path / "user.so").unlink()
            done = run("audit", "--format", "tsv", "--kernel", "0.4.6", "--pid", process.pid)
            last = [line.split("\t")[1:] for line in done.out.splitlines() if "user.so (deleted)" in line]
            equal(last in ([["dsv3_router_gemm", "needs"]], [["-", "not-analysed"]]), True)  # map_files needs a right
        finally:
            process.kill()
            process.wait()


# --- files that lie ---------------------------------------------------------------------------------------------------


def test_other_machines():
    with Tree({"a.so": Elf().bytes, "arm.so": Elf(machine=183).bytes, "s390x.so": Elf(machine=22, big=True).bytes}) as tree:
        equal(rows(tree), "".join(f"{n}\t{ROW}" for n in ("a.so", "arm.so", "s390x.so")))
        equal([(f["machine"], f["bigEndian"]) for f in facts(tree)["files"]], [("x86-64", False), ("aarch64", False), ("s390x", True)])
        narrow = patched(Elf().bytes, (4, "B", 1))
        tree.put("w.so", narrow)
        equal(tree.run("audit", "w.so").err, "sgl-migrate: w.so: not analysed: a 32-bit ELF file; only 64-bit ones are read\n")
        tree.put("w.zip", zipped({f"{i}.so": narrow for i in range(3)}))
        equal(tree.run("audit", "w.zip").err, "sgl-migrate: w.zip!0.so: not analysed: a 32-bit ELF file; only 64-bit ones are read (and 2 more members of the archive)\n")


def test_no_section_headers():
    whole = user()
    for data in (whole, user("-Wl,--hash-style=gnu"), user("-Wl,--hash-style=sysv")):
        with Tree({"a.so": patched(data, (40, "Q", 0), (60, "H", 0), (62, "H", 0))}) as tree:
            equal(rows(tree), f"a.so\t{ROW}")
            equal(len(facts(tree)["files"][0]["exported"]), 1)


def moved_names(data):
    """The library without section headers, its dynamic strings at the end of the file, as tools that add to them leave it."""
    out = bytearray(patched(data, (40, "Q", 0), (60, "H", 0), (62, "H", 0)))
    offset, count = struct.unpack_from("<Q", out, 32)[0], struct.unpack_from("<H", out, 56)[0]
    segments = [(at, *struct.unpack_from("<IIQQQQQQ", out, at)) for at in range(offset, offset + 56 * count, 56)]
    last = max((s for s in segments if s[1] == 1), key=lambda s: s[4])
    dynamic = next(s[3] for s in segments if s[1] == 2)
    entries = {struct.unpack_from("<Q", out, at)[0]: at + 8 for at in range(dynamic, dynamic + 16 * 40, 16)}
    value = lambda tag: struct.unpack_from("<Q", out, entries[tag])[0]
    names, size = value(5), value(10)  # DT_STRTAB and DT_STRSZ; its segment begins at offset 0
    out += out[names:names + size]
    out[names:names + size] = b"\xff" * size
    struct.pack_into("<Q", out, entries[5], last[4] + len(out) - size - last[3])
    struct.pack_into("<QQ", out, last[0] + 32, len(out) - last[3], len(out) - last[3])
    return bytes(out)


def test_number_of_symbols():
    """Without section headers it follows from the hash table or, when nothing is exported, from the relocations."""
    hidden = USER.replace("void user", '__attribute__((visibility("hidden"))) void user')
    for source, exported in ((USER, ["_Z4userRN2at6TensorERKS0_"]), (hidden, [])):
        for style in ("gnu", "sysv", "both"):
            data = compiled(source, f"-Wl,--hash-style={style}", "-Wl,--build-id=0x0123456789abcdef")
            with Tree({"a.so": moved_names(data)}) as tree:
                equal(rows(tree), f"a.so\t{ROW}")
                file = facts(tree)["files"][0]
                equal(([s["name"] for s in file["undefined"]], [s["name"] for s in file["exported"]], file["buildId"]), ([ROUTER], exported, "0123456789abcdef"))


def test_absurd_counts_and_offsets():
    whole, small = user(), Elf().bytes
    shoff = struct.unpack_from("<Q", whole, 40)[0]
    changes = {"4G sections": [(60, "H", 0), (shoff + 32, "Q", 1 << 32)], "sections beyond": [(40, "Q", 1 << 60)], "sections wrap": [(40, "Q", (1 << 64) - 32)],
               "64K sections": [(60, "H", 65535)], "segments": [(56, "H", 65535)], "segments in section 0": [(56, "H", 65535), (shoff + 44, "I", 0xffffffff)],
               "names": [(62, "H", 65534)], "class": [(4, "B", 9)], "order": [(5, "B", 7)], "version": [(6, "B", 0)], "entry sizes": [(54, "H", 1), (58, "H", 3)]}
    files = {f"{name}.so": patched(whole, *change) for name, change in changes.items()}
    with Tree(files) as tree:
        start = time.monotonic()
        done = tree.run("audit", *ARGS, "--format", "tsv", ".")
        equal(time.monotonic() - start < 10, True)
        bad = [line.split("\t")[0][:-3] for line in done.out.splitlines() if line.endswith("not-analysed")]
        for name in ("4G sections", "sections beyond", "sections wrap", "64K sections", "segments", "segments in section 0", "class", "order", "version"):
            equal((name, name in bad), (name, True))


def test_overlapping_sections():
    """Thousands of sections, each the whole file: no more work than for a few."""
    tail = b"x\0" * (4 << 20)
    sections = [(0,) * 10] + [(0, 1, 2, 0, 0, len(tail), 0, 0, 1, 0)] * 50000
    with Tree({"a.so": Elf(tail=tail, sections=sections).bytes}) as tree:
        start = time.monotonic()
        done = tree.run("audit", *ARGS, "--format", "tsv", ".")
        equal((done.out, time.monotonic() - start < 10), ("a.so\t-\tnot-analysed\n", True))
        contains(done.err, "its tables lie over each other")


def test_one_long_name_for_all_symbols():
    elf = Elf(undefined=("n" * 100000,) * 1)
    names = Elf(undefined=tuple("n" * 100000 for _ in range(2000)))
    with Tree({"one.so": elf.bytes, "many.so": names.bytes}) as tree:
        done = tree.run("audit", *ARGS, "--format", "tsv", ".")
        equal(done.returncode in (0, 4), True)


main(globals())
