#!/usr/bin/env python3
"""sgl-migrate doctor: environments made by hand, each with one fault; B rows are those of public bug reports."""
import base64, hashlib, json, os, pathlib, shutil, subprocess, sys, tempfile, time
from tool import contains, equal, main, run

MANGLED = "_Z16dsv3_router_gemmRN2at6TensorERKS0_S3_"
OLD_STRING, NEW_STRING = "_ZN5torch3jit17parseSchemaOrNameERKSs", "_ZN5torch3jit17parseSchemaOrNameERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
LIBRARIES = tempfile.TemporaryDirectory(prefix="sgl-migrate-test-")


def library(code, *flags):
    """A shared object as bytes; the same one is compiled once."""
    key = hashlib.sha256(repr((code, flags)).encode()).hexdigest()
    path = os.path.join(LIBRARIES.name, key)
    if not os.path.exists(path):
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-x", "none", "-o", path, "-nostdlib", *flags], input=code.encode(), check=True)
    return pathlib.Path(path).read_bytes()


def needs(*names):
    """Flags that make a library need others, which are made for the purpose."""
    flags = []
    for name in names:
        path = os.path.join(LIBRARIES.name, "need", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(library("int x;", f"-Wl,-soname,{name}"))
        flags.append(path)
    return ["-Wl,--no-as-needed", *flags]


class Environment:
    """A virtual environment's layout, without an interpreter."""

    def __init__(self, sglang=False):
        self.folder = tempfile.TemporaryDirectory(prefix="sgl-migrate-test-")
        self.prefix = pathlib.Path(self.folder.name).resolve() / "venv"
        self.site = self.prefix / "lib/python3.11/site-packages"
        self.site.mkdir(parents=True)
        (self.prefix / "pyvenv.cfg").write_text("home = /nowhere/bin\nversion = 3.11.7\n")
        self.home = pathlib.Path(self.folder.name) / "home"
        self.home.mkdir()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def put(self, path, content=""):
        file = self.site / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return file

    def dist(self, name, version, files=None, metadata="", record=None, **others):
        info = f"{name.replace('-', '_')}-{version}.dist-info"
        rows = []
        for path, content in (files or {}).items():
            data = content if isinstance(content, bytes) else content.encode()
            self.put(path, data)
            hash = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.append(f"{path},sha256={hash},{len(data)}")
        self.put(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{metadata}\nlong text\n")
        self.put(f"{info}/RECORD", record if record is not None else "".join(f"{row}\n" for row in rows + [f"{info}/RECORD,,"]))
        for path, content in others.items():
            self.put(f"{info}/{path.replace('__', '.')}", content)

    def kernel(self, version="0.4.4", name="sglang-kernel", code=f"int {MANGLED}(void) {{ return 0; }}", flags=(), **more):
        self.dist(name, version, {"sgl_kernel/__init__.py": "", "sgl_kernel/version.py": f'__version__ = "{version}"\n',
                                  "sgl_kernel/common_ops.abi3.so": library(code, *flags)}, **more)

    def torch(self, version="2.8.0", cuda="cuda = '12.8'\nhip = None\n", flags=(), code=f"int {NEW_STRING}(void) {{ return 0; }}"):
        self.dist("torch", version, {"torch/__init__.py": "", "torch/version.py": f"__version__ = '{version}'\n{cuda}",
                                     "torch/lib/libtorch_cpu.so": library(code, "-Wl,-soname,libtorch_cpu.so", *flags)})

    def shim(self, entry="[torch.backends]\nsgl_kernel_compat = _sgl_kernel_compat_autoload:autoload\n"):
        self.dist("sgl-kernel-compat", "0.1.0",
                  {"_sgl_kernel_compat_autoload.py": "", "sgl_kernel_compat/__init__.py": "",
                   "sgl_kernel_jit/lib/libsgl_kernel_compat.so.0":
                       library(f"int {MANGLED}(void) {{ return 0; }}", "-Wl,-soname,libsgl_kernel_compat.so.0")},
                  entry_points__txt=entry)

    def good(self):
        """CPU torch, so that no driver is wanted."""
        self.kernel()
        self.torch(cuda="cuda = None\nhip = None\n")

    def run(self, *args, given=None, **variables):
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "LANG": "C",
                       "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0", **variables}
        return run("doctor", *args, *([given if given is not None else self.prefix] if given != "" else []), env=environment)

    def facts(self, *args, **variables):
        """{id: [(level, text, remedy)]}"""
        done = self.run("--format", "json", *args, **variables)
        answer = json.loads(done.stdout)
        equal(done.returncode, answer["exitStatus"])
        equal(done.returncode, int(any(fact["level"] == "problem" for fact in answer["facts"])))
        facts = {}
        for fact in answer["facts"]:
            facts.setdefault(fact["id"], []).append((fact["level"], fact["text"], fact["remedy"]))
        return facts

    def names(self, *args, **variables):
        return {n["name"]: n for n in json.loads(self.run("--format", "json", "--all", *args, **variables).stdout)["names"]}


def problem(facts, id, text="", remedy=""):
    """Exactly one problem, and it is this one."""
    equal([i for i, all in facts.items() for level, _, _ in all if level == "problem"], [id])
    contains(facts[id][0][1], text)
    contains(facts[id][0][2] or "", remedy)


def warning(facts, id, text="", remedy=""):
    equal([fact[0] for fact in facts.get(id, [])][:1], ["warning"])
    contains(facts[id][0][1], text)
    contains(facts[id][0][2] or "", remedy)


# --- the whole --------------------------------------------------------------------------------------------------------

def test_healthy():
    with Environment() as env:
        env.good()
        done = env.run()
        equal(done.returncode, 0)
        equal(done.err, "")
        contains(done.out, "ok      kernel: sglang-kernel 0.4.4 owns the import sgl_kernel")
        equal("problem " in done.out, False)
        equal("warning " in done.out, False)
        before = sorted((p, p.stat().st_mtime_ns) for p in env.prefix.rglob("*"))
        env.run()
        equal(sorted((p, p.stat().st_mtime_ns) for p in env.prefix.rglob("*")), before)
        equal(list(env.home.iterdir()), [])


def test_usage():
    for args, says in ([["a", "b"], "doctor looks at one environment; b is a second one"], [["--format", "tsv"], "--format 'tsv': text or json"],
                       [["/nowhere"], "/nowhere: No such file"], [[__file__], "not a folder"], [["--to", "jit"], "unknown option --to"], [[""], "'': No such file"]):
        done = run("doctor", *args)
        equal((done.returncode, done.out), (8, ""))
        contains(done.err, says)
    with tempfile.TemporaryDirectory() as folder:
        contains(run("doctor", folder).err, "no Python environment: lib/python3.*/site-packages is not there")


def test_help():
    done = run("doctor", "--help")
    equal((done.returncode, done.err), (0, ""))
    equal(max(len(line) for line in done.out.splitlines()) <= 120, True)
    for part in ("usage: sgl-migrate doctor [", "--import ", "--all ", "--format ", "--catalog ", "--jobs ", "exit status", "examples:"):
        contains(done.out, part)
    contains(run("--help").out, "\n  doctor ")


def test_problems_first():
    with Environment() as env:
        env.put("sgl_kernel/__init__.py")
        env.put("other_left/__init__.py")
        levels = [line.split(" ")[0] for line in env.run().out.splitlines()]
        equal(levels, sorted(levels, key=["problem", "warning", "ok"].index))
        equal(set(levels), {"problem", "warning", "ok"})


# --- which environment ------------------------------------------------------------------------------------------------

def test_environment():
    with Environment() as env:
        env.good()
        for variables in ({"given": env.site}, {"given": "", "VIRTUAL_ENV": str(env.prefix)}):
            contains(env.facts(**variables)["kernel"][0][1], str(env.site))
        (env.prefix / "bin").mkdir()
        (env.prefix / "bin/python3").symlink_to("/bin/true")
        contains(env.facts(given="", PATH=f"{env.prefix}/bin:/usr/bin")["kernel"][0][1], str(env.site))
        (env.prefix / "pyvenv.cfg").unlink()
        script = env.prefix / "bin/python3"
        script.unlink()
        script.write_text("#!/bin/sh\nexit 3\n")
        script.chmod(0o755)
        done = env.run(given="", PATH=f"{env.prefix}/bin:/usr/bin")
        equal(done.returncode, 8)
        contains(done.err, "is a script that chooses an interpreter")


def test_no_code_runs():
    with Environment() as env:
        env.good()
        trap = f"open({str(env.prefix / 'ran')!r}, 'w')\n"
        env.put("evil.pth", "import os; " + trap)
        env.put("sitecustomize.py", trap)
        (env.prefix / "bin").mkdir()
        python = env.prefix / "bin/python3"
        python.write_text(f"#!/bin/sh\n: > {env.prefix}/ran\n")
        python.chmod(0o755)
        env.run()
        equal((env.prefix / "ran").exists(), False)


def test_pth_and_python_path():
    with Environment() as env:
        source = env.prefix / "source"
        (source / "sgl_kernel").mkdir(parents=True)
        (source / "sgl_kernel/__init__.py").write_text("")
        env.put("dev.pth", f"# comment\nimport os\n{source}\n")
        contains(env.facts()["kernel-source"][0][1], "a .pth file")
        (env.site / "dev.pth").unlink()
        contains(env.facts(PYTHONPATH=str(source))["kernel-source"][0][1], "PYTHONPATH")
        env.good()
        problem(env.facts(PYTHONPATH=str(source)), "kernel-shadowed", f"import sgl_kernel finds {source}/sgl_kernel")


def test_editable():
    with Environment() as env:
        env.dist("sglang-kernel", "0.4.4", {"__editable__.sglang_kernel.pth": ""},
                 direct_url__json='{"url": "file:///src/sgl-kernel", "dir_info": {"editable": true}}')
        facts = env.facts()
        contains(facts["kernel-source"][0][1], "an editable install of /src/sgl-kernel")
        equal("kernel-missing" in facts, False)


# --- who owns the import ----------------------------------------------------------------------------------------------

def test_b1_no_kernel():
    with Environment() as env:
        env.dist("sglang", "0.5.18", {"sglang/__init__.py": ""}, metadata="Requires-Dist: sglang-kernel==0.4.4\n")
        problem(env.facts(), "kernel-missing", "No module named 'sgl_kernel'", "pip install sglang-kernel==0.4.4, which sglang 0.5.18 asks for")
    with Environment() as env:
        facts = env.facts()
        for name in ("sglang-kernel", "sgl-kernel"):
            contains(facts["kernel-missing"][0][2], name)


def test_b86_two_owners():
    with Environment() as env:
        env.kernel("0.3.21", "sgl-kernel", code="int old;")
        env.good()
        problem(env.facts(), "kernel-owners", "sgl-kernel 0.3.21, sglang-kernel 0.4.4; they overwrite each other's files, and those on the disk are sglang-kernel's")


def test_metadata_that_is_left():
    """importlib.metadata tells a version of it, which sglang asks for."""
    for record in ("", None):
        with Environment() as env:
            env.good()
            env.dist("sgl-kernel", "0.3.21", record=record)
            warning(env.facts(), "kernel-other-name", "sgl-kernel 0.3.21 is registered as well", "sgl_kernel-0.3.21.dist-info")


def test_b37_orphan():
    with Environment() as env:
        env.put("sgl_kernel/__init__.py")
        problem(env.facts(), "kernel-orphan", "the import finds it all the same")
    with Environment() as env:
        env.put("sgl_kernel/sm90/common_ops.abi3.so", b"x")
        contains(env.facts()["kernel-orphan"][0][1], "no __init__.py")
    with Environment() as env:
        env.good()
        env.put("flash_attn/__init__.py")
        env.put("~gl_kernel/__init__.py")
        facts = env.facts()
        warning(facts, "folders-orphan", "1 folder that no RECORD owns and that can be imported: flash_attn")
        warning(facts, "folders-leftover", "~gl_kernel")


def test_b41_pin():
    with Environment() as env:
        env.good()
        env.dist("sglang", "0.5.18", {"sglang/__init__.py": ""}, metadata="Requires-Dist: sglang-kernel==0.4.5\n")
        problem(env.facts(), "sglang-pin", "sglang 0.5.18 asks for sglang-kernel==0.4.5, but installed is 0.4.4", "pip install sglang-kernel==0.4.5")


def test_unknown_release():
    with Environment() as env:
        env.good()
        env.kernel("9.1")
        shutil.rmtree(env.site / "sglang_kernel-0.4.4.dist-info")
        warning(env.facts(), "kernel-unknown", "kernel 9.1 is newer than")


def test_wrong_version():
    with Environment() as env:
        env.good()
        env.put("sgl_kernel/version.py", '__version__ = "0.3.9"\n')
        facts = env.facts()
        warning(facts, "kernel-version", "says version 0.3.9, its distribution sglang-kernel says 0.4.4")


# --- RECORD -----------------------------------------------------------------------------------------------------------

def test_missing_files():
    with Environment() as env:
        env.good()
        (env.site / "sgl_kernel/version.py").unlink()
        problem(env.facts(), "files-missing", "1 file of its RECORD is missing: sgl_kernel/version.py", "pip install --force-reinstall --no-deps sglang-kernel==0.4.4")
    with Environment() as env:
        env.good()
        (env.site / "sgl_kernel/common_ops.abi3.so").unlink()
        equal({i for i, f in env.facts().items() if f[0][0] == "problem"}, {"files-missing", "kernel-library"})


def test_changed_files():
    with Environment() as env:
        env.good()
        env.put("sgl_kernel/version.py", '__version__ = "0.4.4" \n')
        warning(env.facts(), "files-edited", "sgl_kernel/version.py")
    with Environment() as env:
        env.good()
        env.put("sgl_kernel/version.py", '__version__ = "0.4.5"\n')  # the same size: only the hash tells
        warning(env.facts(), "files-edited", "sgl_kernel/version.py")
    with Environment() as env:
        env.good()
        env.put("torch/__init__.py", "more")  # of torch only the size is compared
        warning(env.facts(), "files-edited", "torch 2.8.0: 1 file of its RECORD is not what was installed")
        env.put("torch/__init__.py", "")
        whole = (env.site / "sgl_kernel/common_ops.abi3.so").read_bytes()
        env.put("sgl_kernel/common_ops.abi3.so", whole[:5000])
        facts = env.facts()
        equal({i for i, f in facts.items() if f[0][0] == "problem"}, {"files-broken", "kernel-library"})


def test_stale_files():
    with Environment() as env:
        env.good()
        env.put("sgl_kernel/old_ops.py")
        env.put("sgl_kernel/__pycache__/old.cpython-311.pyc")
        warning(env.facts(), "files-stale", "1 file in " + str(env.site / "sgl_kernel") + " belongs to no distribution, left by another release: sgl_kernel/old_ops.py")


def test_hostile_records():
    with Environment() as env:
        env.good()
        secret = env.prefix / "secret.py"
        secret.write_text("x")
        rows = ["../../../secret.py,sha256=AAAA,1", '"sgl_kernel/__init__.py",,', '"a ""b"",c.py",sha256=x,9', "/dev/zero,sha256=x,", "sgl_kernel/../../x.py,,",
                "loop/x.py,,", "fifo.py,sha256=x,0", ",,,,,", "sgl_kernel/huge.py,,99999999999999999999", '"no end', "\0"]
        env.dist("hostile", "1", record="\r\n".join(rows))
        env.dist("sgl-kernel-compat", "0.1.0", record="\n".join(rows))
        (env.site / "loop").symlink_to("loop")
        os.mkfifo(env.site / "fifo.py")
        os.mkfifo(env.site / "pipe.pth")
        os.mkfifo(env.site / "entry.dist-info")
        (env.site / "self.pth").write_text(".\n..\n" + "x" * 10000 + "\n\0\n")
        (env.site / "x-1.egg-info").mkdir()
        os.mkfifo(env.site / "x-1.egg-info/top_level.txt")
        facts = env.facts()
        contains(facts["files-missing"][0][1], 'a "b",c.py')
        equal("secret" in json.dumps(facts), False)  # it is there, and has the size; it is not read for its hash


def test_huge_record():
    with Environment() as env:
        env.good()
        record = env.site / "sglang_kernel-0.4.4.dist-info/RECORD"
        with open(record, "r+b") as file:
            file.truncate(65 << 20)
        facts = env.facts()
        warning(facts, "record-unreadable", "RECORD is larger than 64 MiB")
        contains(facts["kernel-incomplete"][0][1], "RECORD is missing")


def test_unreadable():
    with Environment() as env:
        env.good()
        other = {}
        if os.geteuid() == 0:  # root reads everything
            os.chmod(env.folder.name, 0o755)
            other = {"user": 65534, "group": 65534, "extra_groups": []}
        for folder in (env.site / "sgl_kernel", env.site):
            folder.chmod(0)
            try:
                done = run("doctor", env.prefix, env={"PATH": "/usr/bin:/bin", "HOME": str(env.home)}, **other)
            finally:
                folder.chmod(0o755)
            equal(done.returncode, 1)
            contains(done.out, f"problem site-unreadable: {folder} cannot be read: Permission denied")


# --- libraries --------------------------------------------------------------------------------------------------------

def test_b35_missing_library():
    with Environment() as env:
        env.torch(cuda="cuda = None\n")
        env.kernel(flags=needs("libnuma_test.so.1"))
        problem(env.facts(), "library-missing", "sgl_kernel/common_ops.abi3.so needs libnuma_test.so.1, which is not found in", "apt install libnuma1")
        other = env.prefix / "other"
        other.mkdir()
        (other / "libnuma_test.so.1").write_bytes(library("int x;"))
        equal("library-missing" in env.facts(LD_LIBRARY_PATH=str(other)), False)


def test_b25_cxx_abi():
    with Environment() as env:
        env.torch(cuda="cuda = None\n")
        env.kernel(code=f"int {OLD_STRING}(void); int f(void) {{ return {OLD_STRING}(); }}", flags=needs("libtorch_cpu.so"))
        facts = env.facts()
        problem(facts, "torch-abi", "was built with the new C++ ABI of std::string, this file with the old one", "install the kernel release that is made for this torch")
        contains(facts["torch-cxx-abi"][0][1], "the new C++ ABI")


def test_abi_over_two_folders():
    """The kernel in one folder of the path, torch in another one."""
    with Environment() as env, Environment() as other:
        env.torch(cuda="cuda = None\n")
        other.kernel(code=f"int {OLD_STRING}(void); int f(void) {{ return {OLD_STRING}(); }}", flags=needs("libtorch_cpu.so"))
        problem(env.facts(PYTHONPATH=str(other.site)), "torch-abi", "this file with the old one")


def test_b28_abi_comes_first():
    """A wrong ABI and a missing library: the ABI is said first, and no architecture is blamed."""
    with Environment() as env:
        env.torch(cuda="cuda = None\n")
        symbol = "_ZN3c106detail14torchCheckFailEPKcS2_jRKS2_"
        env.kernel(code=f"int {symbol}(void); int f(void) {{ return {symbol}(); }}", flags=needs("libtorch_cpu.so", "libgone_test.so.2"))
        lines = [line for line in env.run().out.splitlines() if line.startswith("problem")]
        equal([line.split()[1] for line in lines], ["torch-abi:", "library-missing:"])
        contains(lines[0], "torch 2.8.0 does not export it")


def test_b31_two_runtimes():
    with Environment() as env:
        for major in (12, 13):
            env.put(f"nvidia/cuda_runtime/lib/libcudart.so.{major}", library("int x;", f"-Wl,-soname,libcudart.so.{major}"))
        env.dist("nvidia-cuda-runtime", "13", record="nvidia/cuda_runtime/lib/libcudart.so.13,,\n")
        env.torch(cuda="cuda = None\n", flags=needs("libcudart.so.13"))
        env.kernel(flags=needs("libcudart.so.12"))
        problem(env.facts(), "cuda-runtimes", "torch loads libcudart.so.13, the kernel's libraries libcudart.so.12", "install the wheel that is made for the CUDA release")


def test_torch_faults():
    with Environment() as env:
        env.kernel(flags=needs("libtorch_cpu.so", "libc10.so"))
        problem(env.facts(), "torch-missing", "torch is not installed")
    with Environment() as env:
        env.good()
        env.dist("torch", "2.7.0")
        equal(env.facts()["torch-twice"][0][0], "problem")
    with Environment() as env:
        env.good()
        (env.site / "torch/lib/libtorch_cpu.so").unlink()
        equal({i for i, f in env.facts().items() if f[0][0] == "problem"}, {"files-missing", "torch-library"})
    with Environment() as env:
        env.good()
        env.put("torch/lib/libtorch_cpu.so", b"\0" * 100)
        contains(env.facts()["torch-library"][0][1], "torch/lib/libtorch_cpu.so: named like a library, but it is no ELF file")
        env.put("other/x.so", b"\0" * 100)
        contains(env.facts()["not-analysed"][0][1], "other/x.so: named like a library")


def test_other_machine():
    with Environment() as env:
        env.good()
        data = bytearray((env.site / "sgl_kernel/common_ops.abi3.so").read_bytes())
        data[18:20] = (183 if data[18] == 62 else 62).to_bytes(2, "little")
        env.kernel(code="int x;")
        env.put("sgl_kernel/common_ops.abi3.so", bytes(data))
        contains(env.facts()["kernel-machine"][0][1], "is for " + ("aarch64" if data[18] == 183 else "x86-64"))


# --- the JIT ----------------------------------------------------------------------------------------------------------

def test_jit_cache():
    with Environment() as env:
        env.good()
        cache = env.prefix / "cache"
        contains(env.facts(SGL_KERNEL_JIT_CACHE_DIR=str(cache))["jit-cache-folder"][0][1], f"JIT cache {cache} (from SGL_KERNEL_JIT_CACHE_DIR), not made yet")
        equal(cache.exists(), False)
        cache.mkdir()
        cache.chmod(0o777)
        warning(env.facts(SGL_KERNEL_JIT_CACHE_DIR=str(cache)), "jit-cache", "may be written by others", "SGL_KERNEL_JIT_CACHE_DIR")
        cache.chmod(0o700)
        equal("jit-cache" in env.facts(SGL_KERNEL_JIT_CACHE_DIR=str(cache)), False)
        warning(env.facts(SGL_KERNEL_JIT_CACHE_DIR="relative"), "jit-cache", "not an absolute path")
        (env.prefix / "link").symlink_to(cache)
        warning(env.facts(SGL_KERNEL_JIT_CACHE_DIR=str(env.prefix / "link")), "jit-cache", "symbolic link")
        if os.geteuid() == 0:
            os.chown(cache, 12345, -1)
            warning(env.facts(SGL_KERNEL_JIT_CACHE_DIR=str(cache)), "jit-cache", "belongs to another user")


def test_nvrtc():
    with Environment() as env:
        env.good()
        env.shim()
        toolkit = env.prefix / "cuda"
        (toolkit / "lib64").mkdir(parents=True)
        file = toolkit / "lib64/libnvrtc.so.12.8.93"
        file.write_bytes(b"x")
        (toolkit / "lib64/libnvrtc.so.12").symlink_to(file.name)
        link = str(toolkit / "lib64/libnvrtc.so.12")
        warning(env.facts(SGL_KERNEL_JIT_NVRTC=link), "nvrtc-builtins", f"finds {link} without its other half, libnvrtc-builtins.so.12.8")
        builtins = toolkit / "lib64/libnvrtc-builtins.so.12.4"
        builtins.write_bytes(b"x")
        warning(env.facts(SGL_KERNEL_JIT_NVRTC=link), "nvrtc-builtins", "of release 12.8, but the builtins beside it are of 12.4")
        builtins.rename(builtins.with_name("libnvrtc-builtins.so.12.8"))
        contains(env.facts(SGL_KERNEL_JIT_NVRTC=link)["nvrtc"][0][1], "release 12.8, builtins 12.8")
        warning(env.facts(SGL_KERNEL_JIT_NVRTC="/nowhere"), "nvrtc-missing", "SGL_KERNEL_JIT_NVRTC names no usable library")
        # beside the runtime that torch loads, as pip lays it out: the distribution tells the release
        env.torch(cuda="cuda = None\n", flags=[*needs("libcudart.so.12"), "-Wl,-rpath,$ORIGIN/../../nvidia/cuda_runtime/lib"])
        env.put("nvidia/cuda_runtime/lib/libcudart.so.12", library("int x;", "-Wl,-soname,libcudart.so.12"))
        env.dist("nvidia-cuda-nvrtc-cu12", "12.6.77", {"nvidia/cuda_nvrtc/lib/libnvrtc.so.12": "x", "nvidia/cuda_nvrtc/lib/libnvrtc-builtins.so.12.6": "x"})
        contains(env.facts()["nvrtc"][0][1], "nvidia/cuda_nvrtc/lib/libnvrtc.so.12, release 12.6, builtins 12.6")


# --- the shim ---------------------------------------------------------------------------------------------------------

def test_shim():
    with Environment() as env:
        env.good()
        env.shim()
        contains(env.facts()["shim"][0][1], "active from `import torch` on")
        warning(env.facts(SGL_KERNEL_COMPAT="0"), "shim-inactive", "SGL_KERNEL_COMPAT=0 turns it off")
        warning(env.facts(TORCH_DEVICE_BACKEND_AUTOLOAD="0"), "shim-inactive", "TORCH_DEVICE_BACKEND_AUTOLOAD=0")
        facts = env.facts(SGL_KERNEL_COMPAT_WARN="loud", SGL_KERNEL_COMPAT_LOG="all", SGL_KERNEL_COMPAT_POLICY="dsv3_router_gemm=error;nothing=warn;bmm_fp8=x",
                          SGL_KERNEL_COMPAT_POLICY_FILE="/nothing")
        equal([fact[1] for fact in facts["variable"]], ["SGL_KERNEL_COMPAT_LOG=all is none of calls, off", "SGL_KERNEL_COMPAT_WARN=loud is none of off, once"])
        equal([fact[1] for fact in facts["policy"]],
              ["the policy file /nothing is not used: it cannot be read: No such file or directory",
               "SGL_KERNEL_COMPAT_POLICY:1: 'nothing' is no deleted name of sgl_kernel; sgl-compat policy show --effective lists them",
               "SGL_KERNEL_COMPAT_POLICY:1: stage 'x' is none of silent, warn, error, tombstone",
               "policy: SGL_KERNEL_COMPAT_POLICY; sgl-compat policy show --effective tells what holds"])
        contains(facts["variables"][0][1], "SGL_KERNEL_COMPAT_WARN=loud")
    with Environment() as env:
        env.good()
        env.shim(entry="[console_scripts]\n")
        warning(env.facts(), "shim-inactive", "entry point")
    with Environment() as env:
        env.kernel()
        env.torch("2.4.1", cuda="cuda = None\n")
        env.shim()
        warning(env.facts(), "shim-inactive", "torch before 2.5")


def test_broken_shim():
    for name, damage, says in (("compat", lambda path: path.unlink(), "libsgl_kernel_compat.so.0 is not there"),
                               ("compat", lambda path: path.write_bytes(path.read_bytes()[:200]), "libsgl_kernel_compat.so.0: "),
                               ("compat", lambda path: path.write_bytes(library("int f;", "-Wl,-soname,libsgl_kernel_compat.so.0", *needs("libsgl_kernel_jit.so.0"))),
                                "needs libsgl_kernel_jit.so.0, which is not there")):
        with Environment() as env:
            env.good()
            env.shim()
            damage(next(env.prefix.rglob(f"libsgl_kernel_{name}.so.0")))
            facts = env.facts()
            equal(("shim" in facts, facts["shim-broken"][0][0]), (False, "problem"))
            contains(facts["shim-broken"][0][1], says)
            equal("\ndsv3_router_gemm                             shim" in env.run().out, False)


def test_standalone():
    with Environment() as env:
        env.torch(cuda="cuda = None\n")
        env.shim()
        equal("kernel-missing" in env.facts(), True)
        facts = env.facts(SGL_KERNEL_COMPAT="standalone")
        equal(("kernel-missing" in facts, facts["kernel-standalone"][0][0]), (False, "ok"))
        contains(env.run(SGL_KERNEL_COMPAT="standalone").out, "\ndsv3_router_gemm                             shim       shim       nobody ")


def test_bypassed():
    with Environment() as env:
        env.torch(cuda="cuda = None\n")
        env.kernel("0.4.5", code="int x;")
        env.dist("fastops", "1", {"fastops/_C.so": library(f"int {MANGLED}(void); int f(void) {{ return {MANGLED}(); }}")})
        contains(env.facts()["shim-bypassed"][0][2], "install sgl-kernel-compat")
        env.shim()
        compat = env.site / "sgl_kernel_jit/lib/libsgl_kernel_compat.so.0"
        problem(env.facts(), "shim-bypassed", "fastops/_C.so needs the C++ function dsv3_router_gemm", f"LD_PRELOAD={compat}")
        contains(env.facts()["shim-bypassed"][0][1], "RTLD_LOCAL")
        copy = env.prefix / compat.name  # a library that is no stand-in cannot be preloaded into the tool itself: this one can
        shutil.copy(compat, copy)
        facts = env.facts(LD_PRELOAD=str(copy))
        equal("shim-bypassed" in facts, False)
        contains(facts["shim-answers"][0][1], "fastops/_C.so needs dsv3_router_gemm")
        problem({**env.facts(LD_PRELOAD="/nowhere/libsgl_kernel_compat.so.0"), "shim-bypassed": []}, "shim-preload", "which is not there")
    with Environment() as env:
        env.torch(cuda="cuda = None\n")
        env.kernel("0.4.5", code="int x;")
        env.dist("fork", "1", {"fork/_C.so": library(f"int {MANGLED}(void) {{ return 0; }}", "-Wl,-Bsymbolic")})
        contains(env.facts()["other-definition"][0][1], "fork/_C.so defines dsv3_router_gemm itself, and its own calls stay with that")


# --- names ------------------------------------------------------------------------------------------------------------

def test_operators_without_a_schema():
    """cutlass_mla_get_workspace_size is defined by its name alone; the name of an operator that left stays in messages."""
    code = 'const char *names[] = {"sgl_kernel", "rmsnorm(Tensor a) -> ()", "cutlass_mla_get_workspace_size", "top_k_mask_logits"};'.replace("names[]", "const names[]")
    with Environment() as env:
        env.torch(cuda="cuda = None\nhip = None\n")
        env.kernel("0.4.6", code=code)
        names = env.names()
        equal([names[n]["operator"] for n in ("rmsnorm", "cutlass_mla_get_workspace_size", "top_k_mask_logits", "moe_sum")], ["kernel", "kernel", "nobody", "nobody"])


def test_names():
    with Environment() as env:
        env.good()
        equal((env.names()["dsv3_router_gemm"]["python"], env.names()["dsv3_router_gemm"]["cxx"]), ("kernel", "kernel"))
    with Environment() as env:
        env.torch(cuda="cuda = None\n")
        env.kernel("0.4.5", code="int x;")
        router = env.names()["dsv3_router_gemm"]
        equal([router[k] for k in ("python", "operator", "cxx", "instead")], ["nobody"] * 3 + ["sgl_kernel_jit.dsv3_router_gemm"])
        env.shim()
        names = env.names()
        equal([names["dsv3_router_gemm"][k] for k in ("python", "operator", "cxx")], ["shim", "shim", "nobody"])
        equal([names["scaled_fp4_quant"][k] for k in ("python", "operator", "cxx")], ["tombstone", "tombstone", "nobody"])
        env.dist("flashinfer-python", "0.6", {"flashinfer/__init__.py": ""})
        merge = env.names()["scaled_fp4_quant"]
        equal([merge[k] for k in ("python", "operator", "library")], ["library", "tombstone", "flashinfer"])
        out = env.run().out
        contains(out, "name                                         Python     operator   C++        use instead\n")
        contains(out, "dsv3_router_gemm                             shim       shim       nobody     sgl_kernel_jit.dsv3_router_gemm\n")
        everything = env.run("--all").out
        for name in env.names().values():
            gone = any(name[layer] in ("nobody", "tombstone") for layer in ("python", "operator", "cxx"))
            row = f"\n{name['name']} "
            equal((row in out, row in everything), (gone, True))
    with Environment() as env:
        env.torch(cuda="cuda = None\n")
        equal("use instead" in env.run().out, False)  # without a kernel nobody has anything


# --- --import ---------------------------------------------------------------------------------------------------------

def interpreter(env, init="", kernel=""):
    """This Python as the environment's, with packages that are plain files."""
    (env.prefix / "bin").mkdir()
    python = env.prefix / "bin/python3"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{env.site}" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    env.put("torch/__init__.py", f"__version__ = '2.8.0'\nclass cuda:\n    is_available = staticmethod(lambda: False)\nclass ops:\n    sgl_kernel = type('n', (), {{'dsv3_router_gemm': 1}})\n{init}\n")
    env.put("sgl_kernel/__init__.py", kernel)


def test_import():
    with Environment() as env:
        env.good()
        interpreter(env, kernel="def dsv3_router_gemm(): pass\n")
        facts = env.facts("--import")
        contains(facts["import"][0][1], f"import sgl_kernel gives {env.site}/sgl_kernel/__init__.py; the shim is not active")
        router = env.names("--import")["dsv3_router_gemm"]
        equal([router["python"], router["operator"]], ["kernel", "kernel"])
        equal(env.names("--import")["awq_dequantize"]["python"], "nobody")
        equal(list(env.site.rglob("__pycache__")), [])


def test_import_fails():
    for error, says, remedy in ((f"raise ImportError('x.so: undefined symbol: {OLD_STRING}')", "import sgl_kernel fails: ImportError: x.so", "made for this torch"),
                                ("raise ImportError('libnuma.so.1: cannot open shared object file: No such file')", "libnuma.so.1 is a system library", "apt install libnuma1"),
                                ("raise SystemExit(3)", "import sgl_kernel fails: SystemExit: 3", "")):
        with Environment() as env:
            env.good()
            interpreter(env, kernel=error)
            facts = env.facts("--import")
            contains(facts["import-kernel"][0][1], says)
            contains(facts["import-kernel"][0][2] or "", remedy)
    for error, says in (("import os; os.abort()", "died of signal 6"), ("import os, sys; sys.stderr.write('last words\\n'); sys.stderr.flush(); os._exit(7)", "ended with status 7: last words")):
        with Environment() as env:
            env.good()
            interpreter(env, kernel=error)
            contains(env.facts("--import")["import-died"][0][1], says)
    with Environment() as env:
        env.good()
        warning(env.facts("--import"), "import-python", "no python3 belongs to this environment")


def test_import_long_message():
    """B27, B35: the line that says the cause, not the summary around it."""
    with Environment() as env:
        env.good()
        interpreter(env, kernel="raise ImportError('CRITICAL: Could not load any common_ops library!\\n- Expected variant: sm100\\n'\n"
                                "  'libnuma.so.1: cannot open shared object file: No such file or directory\\nGPU: None')\n")
        text = env.facts("--import")["import-kernel"][0][1]
        contains(text, "import sgl_kernel fails: libnuma.so.1: cannot open shared object file")
        equal("CRITICAL" in text, False)
        equal(env.names("--import")["dsv3_router_gemm"]["python"], "kernel")  # not imported: nothing is known anew


def test_b69_gpu():
    """An old GPU: the names that do not run on it are listed."""
    with Environment() as env:
        env.good()
        interpreter(env)
        env.put("torch/__init__.py", "__version__ = '2.8.0'\nclass cuda:\n    is_available = staticmethod(lambda: True)\n    get_device_capability = staticmethod(lambda: (7, 5))\n")
        text = env.facts("--import")["gpu-old"][0][1]
        contains(text, "this GPU is sm_75; this project's kernels for ")
        contains(text, "dsv3_router_gemm (sm_80)")


FAST_CLOCK = r"""
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *now) {
  long status = syscall(SYS_clock_gettime, clock, now);
  if (clock == CLOCK_MONOTONIC)
    now->tv_sec = now->tv_sec * 100 + now->tv_nsec / 10000000;
  return (int)status;
}
"""


def test_import_that_never_ends():
    """The doctor's clock runs a hundred times as fast: 120 seconds are over soon."""
    for kernel in ("import time\nwhile True: time.sleep(300)\n", "import os\nwhile True: os.write(2, b'still at it\\n' * 1000)\n",
                   "import signal, time\nfor s in range(1, 32):\n    if s not in (9, 19): signal.signal(s, signal.SIG_IGN)\nwhile True: time.sleep(300)\n"):
        with Environment() as env:
            env.good()
            interpreter(env, kernel=kernel)
            python, pid = env.prefix / "bin/python3", env.prefix / "pid"
            python.write_text(python.read_text().replace("#!/bin/sh\n", f"#!/bin/sh\nunset LD_PRELOAD\necho $$ >'{pid}'\n"))
            (env.prefix / "clock.c").write_text(FAST_CLOCK)
            subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", "clock.so", "clock.c"], cwd=env.prefix, check=True)
            start = time.monotonic()
            facts = env.facts("--import", LD_PRELOAD=str(env.prefix / "clock.so"))
            equal(time.monotonic() - start < 60, True)
            contains(facts["import-died"][0][1], f"the import in {python} was not done after 120 seconds: ")
            equal(os.path.exists(f"/proc/{pid.read_text().strip()}"), False)


def test_import_ends_what_it_started():
    with Environment() as env:
        env.good()
        interpreter(env, kernel=f"import os, time\nif os.fork() == 0:\n    open({str(env.prefix / 'pid')!r}, 'w').write(str(os.getpid()))\n    time.sleep(300)\n"
                                f"while not os.path.exists({str(env.prefix / 'pid')!r}): time.sleep(0.01)\n")
        env.run("--import")
        pid = int((env.prefix / "pid").read_text() or 0)
        for _ in range(600):
            try:
                state = pathlib.Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0]
            except OSError:
                state = "gone"
            if state in ("gone", "Z"):
                return
            time.sleep(0.05)  # killed, but not yet ended
        raise AssertionError(f"process {pid} still runs")


main(globals())
