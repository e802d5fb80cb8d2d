#!/usr/bin/env python3
"""Strange trees, changing files, full disks, signals: nothing hangs, nothing is lost, a clear line, the right status."""
import json, os, random, resource, signal, socket, stat, subprocess, tempfile, threading, time
import xml.etree.ElementTree as xml
from pathlib import Path
from tool import ARGS, TOOL, Tree, contains, equal, main
from suite import Skip

USE = "from sgl_kernel import dsv3_router_gemm\ndsv3_router_gemm(1)\n"
FORMATS = ["text", "sarif", "json", "github", "junit", "html"]
NOBODY = 65534


def fixed():
    with Tree({"a.py": USE}) as tree:
        tree.run("fix", *ARGS, "a.py")
        return tree.get("a.py")


FIXED = fixed()


def root():
    if os.geteuid() != 0:
        raise Skip("needs root")


# --- what a tree can hold ---------------------------------------------------------------------------------------------


def test_gigabyte():
    """Of a file that is too large only the start is read, in time and memory."""
    with Tree({"ok.py": USE}) as tree:
        for name in ("a.py", "a.cu", "a.ipynb", "a.txt", "a"):
            with open(tree.path / name, "wb") as file:
                file.write(USE.encode() if name != "a" else b"\0")
                file.truncate(1 << 30)
        done = tree.run("scan", *ARGS, ".", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)))
        equal((done.returncode, done.err.splitlines()), (5, [f"sgl-migrate: {name}: not analysed: larger than 64 MiB" for name in ("a.cu", "a.ipynb", "a.py")]))
        contains(done.out, "ok.py:1:24: rewrite")


def test_many_names():
    """Time goes with the number of names in a file, not with its square: 50,000 lines took ten seconds."""
    for files, args in (({"a.md": "dsv3_router_gemm is gone\n" * 50000}, ["scan"]), ({"a.py": USE + "# dsv3_router_gemm\n" * 50000}, ["fix", "--diff"])):
        with Tree(files) as tree:
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            done = tree.run(*args, *ARGS, ".")
            equal(done.returncode, 0 if args == ["scan"] else 1)
            taken = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
            equal(taken < 3, True)


def test_deep_folder():
    """Deeper than a path can be written."""
    with Tree({"d/a.py": USE}) as tree:
        folder = os.open(tree.path / "d", os.O_RDONLY)
        for level in range(2500):
            if level in (500, 2400):
                with open(os.open("deep.py", os.O_CREAT | os.O_WRONLY, dir_fd=folder), "w") as file:
                    file.write(USE)
            os.mkdir("dd", dir_fd=folder)
            inner = os.open("dd", os.O_RDONLY, dir_fd=folder)
            os.close(folder)
            folder = inner
        os.close(folder)
        for command in ("scan", "fix"):
            done = tree.run(command, *ARGS, ".")
            equal(done.returncode & ~1, 4)
            line, = done.err.splitlines()
            contains(line, "dd: not analysed: cannot be read: File name too long")
            equal(len([l for l in done.out.splitlines() if ": rewrite " in l or l.startswith("fixed ")]), 2)
        subprocess.run(["rm", "-rf", tree.path / "d"], check=True)


def test_special_files():
    with Tree({"a.py": USE}) as tree:
        os.mkfifo(tree.path / "fifo.py")
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(tree.path / "socket.py"))
        kinds = {"fifo.py": "named pipe", "socket.py": "socket"}
        try:
            os.mknod(tree.path / "device.py", stat.S_IFCHR | 0o600, os.makedev(1, 5))
            kinds["device.py"] = "device"
        except PermissionError:
            pass
        for command in ("scan", "fix"):
            done = tree.run(command, *ARGS, ".")
            equal((done.returncode & ~1, done.err), (0, ""))
            for name, kind in kinds.items():
                contains(done.out, f"left out: {name} ({kind})")
        for name in [*kinds, "/dev/zero"]:
            done = tree.run("scan", *ARGS, name)
            equal((done.returncode, done.err), (8, f"sgl-migrate: {name}: is neither a folder nor a regular file\n"))
        for option in ("--kernel", "--baseline"):
            done = tree.run("scan", option, "fifo.py", ".")
            equal((done.returncode, done.err.count("\n")), (8, 1))
            contains(done.err, "fifo.py")


def test_pipe_that_took_the_place_of_a_file():
    """Between the walk and the read: the file is opened without waiting for a writer."""
    with Tree({f"m{i}.py": USE for i in range(300)}) as tree:
        stop = threading.Event()

        def replace():
            rng = random.Random(1)
            while not stop.is_set():
                name = tree.path / f"m{rng.randrange(300)}.py"
                name.unlink()
                rng.choice([lambda: os.mkfifo(name), lambda: name.symlink_to("/etc/passwd"), lambda: name.mkdir(), lambda: None])()
                time.sleep(0.001)
                name.rmdir() if name.is_dir() else name.unlink(missing_ok=True)
                name.write_text(USE)

        thread = threading.Thread(target=replace)
        thread.start()
        try:
            for _ in range(8):
                done = tree.run("scan", *ARGS, ".")
                equal(done.returncode & ~(1 | 4), 0)
                equal([l for l in done.err.splitlines() if not l.startswith("sgl-migrate: m") or "not analysed: " not in l], [])
                equal("passwd:" in done.out, False)
        finally:
            stop.set()
            thread.join()


def test_links():
    with Tree({"a.py": USE, "d/b.py": USE}) as tree:
        for link, target in (("loop1", "loop2"), ("loop2", "loop1"), ("d/up", ".."), ("d/self", "self"), ("c.py", "a.py"), ("out.py", "/etc/passwd")):
            (tree.path / link).symlink_to(target)
        done = tree.run("scan", *ARGS, ".")
        equal((done.returncode, done.err), (1, ""))
        equal([l.split(":")[0] for l in done.out.splitlines() if ": rewrite " in l], ["a.py", "d/b.py"])
        for line in ("loop1 (link that leads to itself)", "d/self (link that leads to itself)", "out.py (link to a file outside; "):
            contains(done.out, "left out: " + line)
        equal(tree.run("fix", *ARGS, ".").returncode, 0)
        equal((tree.get("a.py"), (tree.path / "c.py").is_symlink()), (FIXED, True))


def test_names():
    """Bytes that are no UTF-8, line ends, markup: every form stays well-formed and on its lines."""
    names = [b"a\xff.py", b"new\nline.py", b"<b>&\".py", b"\xe2\x80\xaertl.py", b"d\xfe/x y.py", b"%41.py", b"-rf.py", b"::error::x.py"]
    with Tree() as tree:
        base = os.fsencode(tree.path)
        os.mkdir(base + b"/d\xfe")
        for name in names:
            with open(base + b"/" + name, "w") as file:
                file.write(USE)
        for format in FORMATS:
            done = tree.run("scan", "--format", format, *ARGS, ".")
            equal((format, done.returncode), (format, 1))
            text = done.stdout.decode(errors="surrogateescape" if format == "github" else "strict")  # there the name is as it is
            if format == "sarif":
                uris = [r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in json.loads(text)["runs"][0]["results"]]
                equal(sorted(set(uris)), sorted(["a%FF.py", "new%0Aline.py", "%3Cb%3E%26%22.py", "%E2%80%AErtl.py", "d%FE/x%20y.py", "%2541.py",
                                                 "-rf.py", "%3A%3Aerror%3A%3Ax.py"]))
            elif format == "json":
                equal(len({f["path"] for f in json.loads(text)["findings"]}), len(names))
            elif format == "junit":
                xml.fromstring(text)
            elif format == "github":
                equal([l for l in text.splitlines() if l and not l.startswith("::error file=") and l.startswith("::")], [])
            elif format == "text":
                equal(text.count(": rewrite "), len(names))
                contains(text, "new\\x0aline.py:1:24: rewrite")
            elif format == "html":
                equal("<b>&" in text, False)
        equal(tree.run("fix", *ARGS, ".").returncode, 0)
        for name in names:
            with open(base + b"/" + name) as file:
                equal(file.read(), FIXED)


def as_nobody(tree, *args):
    tree.path.chmod(0o755)
    program = tree.path.parent / f"{tree.path.name}-tool"  # the build folder may be closed to others
    program.write_bytes(Path(TOOL).read_bytes())
    program.chmod(0o755)
    try:
        return subprocess.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", program, *args], cwd=tree.path,
                              capture_output=True, text=True, timeout=60, env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"})
    finally:
        program.unlink()


def test_no_permission():
    root()
    with Tree({"closed.py": USE, "open.py": USE, "dir/a.py": USE, "list/a.py": USE, "mine/b.py": USE}) as tree:
        for name, mode in (("closed.py", 0), ("dir", 0), ("list", 0o744)):
            (tree.path / name).chmod(mode)
        os.chown(tree.path / "mine", NOBODY, NOBODY)
        os.chown(tree.path / "mine/b.py", NOBODY, NOBODY)
        done = as_nobody(tree, "scan", *ARGS, ".")
        equal((done.returncode, done.stderr.splitlines()),
              (5, [f"sgl-migrate: {name}: not analysed: cannot be read: Permission denied" for name in ("closed.py", "dir", "list/a.py")]))
        done = as_nobody(tree, "fix", *ARGS, ".")
        equal(done.returncode, 1 | 4 | 16)
        contains(done.stderr, "sgl-migrate: open.py: ")
        equal((tree.get("open.py"), tree.get("mine/b.py"), sorted(os.listdir(tree.path / "mine"))), (USE, FIXED, ["b.py"]))
        (tree.path / "dir").chmod(0o755)
        done = as_nobody(tree, "scan", *ARGS, "closed.py")
        equal((done.returncode & 12) != 0, True)


# --- files that change ------------------------------------------------------------------------------------------------


def test_file_that_changes_while_it_is_read():
    """Grows, shrinks, is replaced: each scan tells what some version had, or that it could not."""
    with Tree({f"m{i}.py": USE for i in range(40)}) as tree:
        stop = threading.Event()

        def change():
            rng = random.Random(2)
            while not stop.is_set():
                path = tree.path / f"m{rng.randrange(40)}.py"
                kind = rng.randrange(4)
                if kind == 0:
                    with open(path, "a") as file:
                        file.write("x = 1\n" * rng.randrange(20000))
                elif kind == 1:
                    os.truncate(path, rng.randrange(60))
                elif kind == 2:
                    path.write_text(USE)
                else:
                    new = tree.path / "new"
                    new.write_text("y = 2\n" * rng.randrange(20000) + USE)
                    new.rename(path)

        thread = threading.Thread(target=change)
        thread.start()
        try:
            for _ in range(10):
                done = tree.run("scan", *ARGS, "--format", "json", ".")
                equal(done.returncode & ~(1 | 2 | 4), 0)
                json.loads(done.stdout)
        finally:
            stop.set()
            thread.join()


def test_file_that_changes_while_it_is_fixed():
    """What somebody else has written meanwhile is never lost: a file is some version of theirs, or what fix made of one."""
    for seed in range(3):
        with Tree({"a.py": USE}) as tree:
            stop, versions = threading.Event(), [USE]

            def save():
                rng = random.Random(seed)
                while not stop.is_set():
                    versions.append(USE + f"# {len(versions)}\n")
                    new = tree.path / "new.tmp"
                    new.write_text(versions[-1])
                    new.rename(tree.path / "a.py")
                    time.sleep(rng.random() * 0.01)

            thread = threading.Thread(target=save)
            thread.start()
            for _ in range(6):
                done = tree.run("fix", *ARGS, "a.py")
                equal(done.returncode & ~(1 | 16), 0)
                if done.returncode & 16:
                    contains(done.err, "sgl-migrate: a.py: ")
            stop.set()
            thread.join()
            text = tree.get("a.py")
            equal(text in versions or text.replace(FIXED, USE) in versions, True)
            equal([n for n in os.listdir(tree.path) if n not in ("a.py", "new.tmp")], [])


# --- output and signals -----------------------------------------------------------------------------------------------


def test_disk_full_while_reporting():
    with Tree({"a.py": USE}) as tree:
        for args in (*(["scan", "--format", f, *ARGS, "."] for f in FORMATS), ["fix", "--diff", *ARGS, "."], ["explain", "dsv3_router_gemm"], ["--version"]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([TOOL, *args], cwd=tree.path, stdout=full, stderr=subprocess.PIPE, text=True)
            equal((args, done.returncode & 16), (args, 16))
            contains(done.stderr, "sgl-migrate: standard output: No space left on device\n")
        log = tree.run("scan", "--format", "sarif", *ARGS, ".").stdout
        tree.put("a.sarif", log)
        with open("/dev/full", "w") as full:
            done = subprocess.run([TOOL, "merge", "a.sarif"], cwd=tree.path, stdout=full, stderr=subprocess.PIPE, text=True)
        equal(done.returncode & 16, 16)
        done = tree.run("scan", *ARGS, "--write-baseline", "/dev/full", ".")
        equal(done.returncode & (8 | 16) != 0, True)
        contains(done.err, "/dev/full: ")


def test_disk_full_while_fixing():
    """A file system of 64 KiB that is full: the files stay as they are."""
    root()
    with tempfile.TemporaryDirectory() as folder:
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True).returncode:
            raise Skip("no mount of a small file system here")
        try:
            for i in range(2):
                Path(folder, f"m{i}.py").write_text(USE + "# " + "-" * 20000 + "\n")
            with open(Path(folder, "fill"), "wb", 0) as file:
                try:
                    while True:
                        file.write(bytes(4096))
                except OSError:
                    pass
            names = sorted(os.listdir(folder))
            before = {n: Path(folder, n).read_bytes() for n in names}
            done = subprocess.run([TOOL, "fix", *ARGS, folder], capture_output=True, text=True)
            equal(done.returncode & 16, 16)
            contains(done.stderr, "No space left on device")
            equal({n: Path(folder, n).read_bytes() for n in os.listdir(folder)}, before)
            done = subprocess.run([TOOL, "scan", *ARGS, "--write-baseline", f"{folder}/accepted", folder], capture_output=True, text=True)
            equal((done.returncode & 16, Path(folder, "accepted").exists() and Path(folder, "accepted").stat().st_size > 0), (16, False))
        finally:
            subprocess.run(["umount", folder], check=True)


def test_reader_that_goes_away():
    """Neither a signal's death nor a traceback: status 16 and a line, also with SIGPIPE as a shell leaves it."""
    with Tree({f"m{i}.py": USE for i in range(400)}) as tree:
        for args in (["scan", *ARGS, "."], ["scan", "--format", "sarif", *ARGS, "."], ["fix", "--diff", *ARGS, "."]):
            read, write = os.pipe()
            process = subprocess.Popen([TOOL, *args], cwd=tree.path, stdout=write, stderr=subprocess.PIPE, text=True)
            os.close(write)
            os.read(read, 10)
            os.close(read)
            err = process.communicate()[1]
            equal((args, process.returncode in (-signal.SIGPIPE, 17, 16, 19)), (args, True))
            if process.returncode > 0:
                contains(err, "sgl-migrate: standard output: Broken pipe")
        equal({tree.get(f"m{i}.py") for i in range(400)}, {USE})


def test_stopped():
    """Ctrl-C and kill -9 at any time: each file is as it was or as it is to be, and the next run takes away what was left."""
    rng = random.Random(3)
    count = 150
    with Tree({f"d{i % 5}/m{i}.py": USE for i in range(count)}) as tree:
        files = [tree.path / f"d{i % 5}/m{i}.py" for i in range(count)]
        whole = time.monotonic()
        tree.run("fix", *ARGS, ".")
        whole = time.monotonic() - whole
        equal({f.read_text() for f in files}, {FIXED})
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGHUP) * 3:
            for file in files:
                file.write_text(USE)
            process = subprocess.Popen([TOOL, "fix", *ARGS, "."], cwd=tree.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            time.sleep(rng.random() * whole)
            process.send_signal(number)
            process.communicate()
            equal(process.returncode == -number or process.returncode in (0, 16 | 1, 128 + number), True)
            equal({f.read_text() for f in files} - {USE, FIXED}, set())
            equal(tree.run("scan", *ARGS, ".").returncode & ~1, 0)  # what is left of a write is no part of the tree
            equal(tree.run("fix", *ARGS, ".").returncode, 0)
            equal({f.read_text() for f in files}, {FIXED})
        for file in files:
            file.write_text(USE)
        tree.run("fix", *ARGS, ".")
        equal(sorted(p for p in tree.path.rglob("*") if p.is_file()), sorted(files))


main(globals())
