#!/usr/bin/env python3
"""fix: --diff, --interactive, --unsafe, --force, git work trees, writing under bad conditions."""
import os, pty, select, shutil, signal, subprocess, time
from tool import ARGS, TOOL, Tree, contains, equal, main, run
from suite import Skip

OLD = "from sgl_kernel import dsv3_router_gemm\n"
NEW = "from sgl_kernel_jit import dsv3_router_gemm\n"
GUARDED = "try:\n    from sgl_kernel import dsv3_router_gemm\nexcept ImportError:\n    dsv3_router_gemm = None\n"
CALLS = "#include <sgl_kernel_ops.h>\n" + "".join(
    f"void f{i}(at::Tensor& a) {{\n{chr(10) * 8}  dsv3_router_gemm(a, a, a);\n}}\n" for i in range(3))


def git(tree, *args, folder="."):
    done = subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always", *args],
                          cwd=tree.path / folder, capture_output=True)
    if done.returncode:
        raise AssertionError(f"git {args}: {done.stderr.decode()}")
    return done.stdout.decode()


def commit(tree, folder="."):
    git(tree, "init", "-q", folder=folder)
    git(tree, "add", "-A", folder=folder)
    git(tree, "commit", "-q", "-m", "x", folder=folder)


def snapshot(tree):
    return {str(path.relative_to(tree.path)): path.read_bytes() for path in tree.path.rglob("*")
            if path.is_file() and ".git" not in path.relative_to(tree.path).parts}


# --- --diff ------------------------------------------------------------------------------------------------------------

FORMS = {
    "plain.py": OLD + "x = 1\n",
    "no newline.py": "x = 1\n" + OLD.rstrip(),
    "first/no-newline-in-old.py": "from sgl_kernel import (\n    rmsnorm,\n    dsv3_router_gemm,\n)",
    "with space/crlf é.py": ("x = 1\n" + OLD + "y = 2\n").replace("\n", "\r\n"),
    'quote".py': OLD,
    "tab\tname.py": OLD,
    "bom.py": "\ufeff" + OLD,
    "many.py": "import sgl_kernel\n" + "\n".join(f"x{i} = {i}\n" * 9 + f"y{i} = sgl_kernel.dsv3_router_gemm({i})\n" for i in range(4)),
    "src/calls.cc": CALLS,
    "book.ipynb": '{"cells": [{"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": null,\n "source": ["from sgl_kernel import '
                  'dsv3_router_gemm\\n", "x = 1"]}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}\n',
    "same.py": "x = 1\n",
    "person.py": "import torch\ntorch.ops.sgl_kernel.dsv3_router_gemm(a, b, c)\n",
}


def patch_of(tree, *paths, folder="."):
    done = run("fix", "--diff", *ARGS, *paths, cwd=tree.path / folder)
    equal(done.returncode & ~3, 0)
    return done.stdout


def apply(tree, patch, folder="."):
    done = subprocess.run(["git", "apply", "--whitespace=nowarn", "-"], input=patch, cwd=tree.path / folder, capture_output=True)
    equal((done.returncode, done.stderr.decode()), (0, ""))


def test_diff_is_what_fix_does():
    for repository in (True, False):
        with Tree(FORMS) as tree, Tree(FORMS) as other:
            if repository:
                commit(tree)
                commit(other)
            before = snapshot(tree)
            patch = patch_of(tree, ".")
            equal(snapshot(tree), before)
            apply(tree, patch)
            other.run("fix", *ARGS, ".")
            equal(snapshot(tree), snapshot(other))
            equal(len([path for path, old in before.items() if snapshot(tree)[path] != old]), 10)
            equal(patch_of(tree, "."), b"")


def test_diff_says_on_standard_error_what_it_would_do():
    with Tree(FORMS) as tree:
        done = tree.run("fix", "--diff", *ARGS, ".")
        equal(done.returncode, 3)
        equal(done.err, "sgl-migrate: 10 files would change; 1 use needs a person: sgl-migrate scan lists them\n")
        equal(done.out.startswith("diff --git a/"), True)
        done = tree.run("fix", "--diff", *ARGS, "same.py")
        equal((done.returncode, done.out), (0, ""))


def test_diff_in_a_subfolder_and_of_several_roots():
    with Tree({f"top/{path}": text for path, text in FORMS.items()}) as tree:
        commit(tree, "top")
        done = run("fix", "--diff", *ARGS, ".", cwd=tree.path / "top/src")
        equal(done.stdout.count(b"\n+++ b/src/calls.cc"), 1)  # paths from the top of the work tree, as git's own
        apply(tree, done.stdout, "top/src")
        contains(tree.get("top/src/calls.cc"), "sgl_kernel_jit::")
        apply(tree, patch_of(tree, "top/first", "top/plain.py", "top/with space"), "top")
        equal(git(tree, "status", "--short", folder="top").count("\n"), 4)
        apply(tree, patch_of(tree, tree.path / "top", folder="/"), "top")  # from elsewhere
        equal(patch_of(tree, "top"), b"")


def test_diff_without_a_repository():
    with Tree({"a/x.py": OLD, "b/y.py": OLD}) as tree:
        apply(tree, patch_of(tree, "a", "b/y.py"))
        equal((tree.get("a/x.py"), tree.get("b/y.py")), (NEW, NEW))
    with Tree({"a/x.py": OLD}) as tree:
        apply(tree, patch_of(tree, tree.path / "a", folder="/"), "a")  # not below the current folder: from the root
        equal(tree.get("a/x.py"), NEW)


def test_diff_of_a_submodule():
    with Tree({"lib/x.py": OLD, "app/y.py": OLD}) as tree:
        commit(tree, "lib")
        commit(tree, "app")
        git(tree, "submodule", "--quiet", "add", f"{tree.path}/lib", "lib", folder="app")
        git(tree, "commit", "-q", "-m", "x", folder="app")
        apply(tree, patch_of(tree, "app"), "app")
        equal((tree.get("app/y.py"), tree.get("app/lib/x.py")), (NEW, NEW))


def test_diff_with_a_clean_and_a_dirty_tree():
    with Tree({"a.py": OLD}) as tree:
        commit(tree)
        tree.put("a.py", "x = 1\n" + OLD)
        apply(tree, patch_of(tree, "."))
        equal(tree.get("a.py"), "x = 1\n" + NEW)


# --- git work trees ----------------------------------------------------------------------------------------------------

def refused(tree, says, *args, folder="."):
    before = snapshot(tree)
    done = run("fix", *ARGS, *args, cwd=tree.path / folder)
    equal((done.returncode, done.out, done.err.count("\n")), (8, "", 1))
    contains(done.err, says)
    contains(done.err, "or give --force\n")
    equal(snapshot(tree), before)


def fixes(tree, *args, folder="."):
    done = run("fix", *ARGS, *args, cwd=tree.path / folder)
    equal((done.returncode & ~3, done.err), (0, ""))
    contains(done.out, "fixed ")


def test_clean_tree():
    with Tree({"a.py": OLD, "b.py": "x\n"}) as tree:
        commit(tree)
        tree.put("untracked.py", "x = 1\n")  # fix does not touch it
        fixes(tree, ".")
        equal(git(tree, "status", "--short"), " M a.py\n?? untracked.py\n")


def test_dirty_trees():
    for path, how, says in (
        ("a.py", "edit", "a.py: has changes that are not committed; nothing is fixed; commit or stash first"),
        ("a.py", "stage", "a.py: has staged changes"),
        ("b.py", "edit", "b.py: has changes that are not committed"),
        ("b.py", "stage", "b.py: has staged changes"),
        ("b.py", "delete", "b.py: has changes that are not committed"),
        ("new.py", "stage", "new.py: has staged changes"),
        ("new.py", "edit", "new.py: is not in git yet, so git could not give it back"),
    ):
        with Tree({"a.py": OLD, "b.py": "x\n"}) as tree:
            commit(tree)
            if how == "delete":
                (tree.path / path).unlink()
            else:
                tree.put(path, OLD + "# more\n")
            if how == "stage":
                git(tree, "add", path)
            refused(tree, f"{tree.path}/{says}", ".")
            fixes(tree, "--force", ".")


def test_only_what_is_below_the_paths_counts():
    with Tree({"src/a.py": OLD, "src/c.py": "x\n", "docs/b.py": "x\n"}) as tree:
        commit(tree)
        tree.put("docs/b.py", "y\n")
        refused(tree, "docs/b.py", ".")
        fixes(tree, "src")
        git(tree, "checkout", "-q", ".")
        tree.put("src/c.py", "y\n")
        refused(tree, "src/c.py", "src")
        fixes(tree, "src/a.py")


def test_several_dirty_files():
    with Tree({"a.py": OLD, "b.py": "x\n", "c.py": "x\n"}) as tree:
        commit(tree)
        for name in "abc":
            tree.put(f"{name}.py", OLD + "# more\n")
        refused(tree, "a.py: has changes that are not committed (and 2 more); nothing is fixed", ".")


def test_nothing_to_fix_is_not_refused():
    with Tree({"a.py": "x = 1\n"}) as tree:
        commit(tree)
        tree.put("a.py", "y = 1\n")
        equal(tree.run("fix", *ARGS, ".").returncode, 0)


def test_repository_without_a_commit():
    with Tree({"a.py": OLD}) as tree:
        git(tree, "init", "-q")
        refused(tree, "a.py: is not in git yet", ".")
        git(tree, "add", "-A")
        refused(tree, "a.py: has staged changes", ".")


def test_what_git_ignores_is_as_without_git():
    with Tree({".gitignore": "gen/\n", "a.py": "x\n", "gen/b.py": OLD}) as tree:
        commit(tree)
        fixes(tree, "gen")


def test_conflict():
    with Tree({"a.py": OLD}) as tree:
        commit(tree)
        git(tree, "checkout", "-q", "-b", "other")
        tree.put("a.py", "x = 1\n" + OLD)
        git(tree, "commit", "-qam", "x")
        git(tree, "checkout", "-q", "-")
        tree.put("a.py", "y = 1\n" + OLD)
        git(tree, "commit", "-qam", "x")
        subprocess.run(["git", "merge", "other"], cwd=tree.path, capture_output=True)
        tree.put("a.py", OLD)
        refused(tree, "a.py: has a merge conflict", ".")


def test_submodule():
    with Tree({"lib/x.py": OLD, "lib/z.py": "x\n", "app/y.py": OLD}) as tree:
        commit(tree, "lib")
        commit(tree, "app")
        git(tree, "submodule", "--quiet", "add", f"{tree.path}/lib", "lib", folder="app")
        git(tree, "commit", "-q", "-m", "x", folder="app")
        tree.put("app/lib/z.py", "y\n")
        refused(tree, "app/lib/z.py: has changes that are not committed", "app")
        git(tree, "checkout", "-q", ".", folder="app/lib")
        fixes(tree, "app")
        equal((tree.get("app/y.py"), tree.get("app/lib/x.py")), (NEW, NEW))


def test_linked_work_tree():
    with Tree({"a/x.py": OLD}) as tree:
        commit(tree, "a")
        git(tree, "worktree", "add", "-q", f"{tree.path}/b", folder="a")
        tree.put("a/x.py", "x\n")  # of another work tree
        fixes(tree, "b")
        tree.put("b/y.py", OLD)
        refused(tree, "b/", "b")


def test_bare_repository():
    with Tree({"a/x.py": OLD}) as tree:
        git(tree, "init", "-q", "--bare", "bare.git")
        tree.put("bare.git/hooks/x.py", OLD)
        fixes(tree, "bare.git/hooks")


def test_lock():
    with Tree({"a.py": OLD}) as tree:
        commit(tree)
        tree.put(".git/index.lock", "")
        refused(tree, f"{tree.path}/.git/index.lock: another git is at work in this tree, or was killed; nothing is fixed; wait or remove the lock", ".")
        fixes(tree, "--force", ".")


def test_sparse_checkout():
    with Tree({"a/x.py": OLD, "b/y.py": "x\n"}) as tree:
        commit(tree)
        git(tree, "sparse-checkout", "set", "--no-cone", "a")
        equal((tree.path / "b").exists(), False)
        fixes(tree, ".")


# --- --unsafe ----------------------------------------------------------------------------------------------------------

def test_guarded_imports():
    for text, done in (
        (GUARDED, GUARDED.replace(OLD.strip(), NEW.strip())),
        ("import contextlib\nwith contextlib.suppress(ImportError):\n    " + OLD, "import contextlib\nwith contextlib.suppress(ImportError):\n    " + NEW),
        ("try:\n    from sgl_kernel import rmsnorm, dsv3_router_gemm\nexcept Exception:\n    pass\n",
         "try:\n    from sgl_kernel import rmsnorm\n    from sgl_kernel_jit import dsv3_router_gemm\nexcept Exception:\n    pass\n"),
        # all else stays what it is: the fallback arm, probes, qualified uses, operators, strings, names without a target
        ("try:\n    import fast\nexcept ImportError:\n    " + OLD, None),
        ("import sgl_kernel\nif hasattr(sgl_kernel, 'dsv3_router_gemm'):\n    " + OLD, None),
        ("try:\n    import sgl_kernel\nexcept ImportError:\n    pass\nsgl_kernel.dsv3_router_gemm(a, b)\n", None),
        ("import sgl_kernel\ntry:\n    f = sgl_kernel.dsv3_router_gemm\nexcept AttributeError:\n    f = None\n", None),
        ("import torch\ntry:\n    torch.ops.sgl_kernel.dsv3_router_gemm\nexcept AttributeError:\n    pass\n", None),
        ("try:\n    from sgl_kernel import bmm_fp8\nexcept ImportError:\n    pass\n", None),
        ("if is_musa:\n    try:\n        " + OLD + "    except ImportError:\n        pass\n", None),
        ("try:\n    " + OLD + "except ImportError:\n    from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm\n", None),
    ):
        with Tree({"a.py": text}) as tree:
            tree.run("fix", *ARGS, ".")
            equal(tree.get("a.py"), text)
            tree.run("fix", "--unsafe", *ARGS, ".")
            equal(tree.get("a.py"), done or text)
            tree.run("fix", "--unsafe", *ARGS, ".")
            equal(tree.get("a.py"), done or text)


def test_unsafe_does_what_safe_does_too():
    with Tree({"a.py": OLD, "b.py": GUARDED}) as tree:
        contains(tree.run("fix", "--unsafe", *ARGS, ".").out, "2 files fixed; 0 live uses left")


# --- --interactive -----------------------------------------------------------------------------------------------------

def interruptible():
    """Whoever runs the tests in the background may have had interrupts ignored, and children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Terminal:
    def __init__(self, tree, *args, environment=None):
        self.end, end = pty.openpty()
        self.process = subprocess.Popen([TOOL, "fix", "--interactive", *ARGS, *args], cwd=tree.path, stdin=end, stdout=end, stderr=end,
                                        start_new_session=True, preexec_fn=interruptible, env={**os.environ, "TERM": "dumb", **(environment or {})})
        os.close(end)
        self.text = ""

    def read(self, until):
        deadline = time.monotonic() + 60
        while until is None or until not in self.text:
            if not select.select([self.end], [], [], max(0, deadline - time.monotonic()))[0]:
                raise AssertionError(f"no {until!r} in {self.text!r}")
            try:
                part = os.read(self.end, 65536)
            except OSError:
                part = b""
            if not part:
                break
            self.text += part.decode(errors="replace").replace("\r\n", "\n")
        return self.text

    def answer(self, *answers):
        """Each answer after its question; returns what was shown from the first one on."""
        shown = ""
        for answer in answers:
            shown += self.read("? ")
            self.text = ""
            os.write(self.end, (answer if answer == "\x04" else answer + "\n").encode())
        return shown + self.finish()

    def finish(self):
        text = self.read(None)
        self.status = self.process.wait()
        os.close(self.end)
        return text


def test_no_terminal():
    with Tree({"a.py": OLD}) as tree:
        done = tree.run("fix", "--interactive", *ARGS, ".", stdin=subprocess.DEVNULL)
        equal((done.returncode, done.out, tree.get("a.py")), (8, "", OLD))
        equal(done.err, "sgl-migrate: --interactive needs a terminal to ask on; --diff shows the changes without one\n")
        done = tree.run("fix", "--interactive", "--diff", ".")
        equal((done.returncode, done.err), (8, "sgl-migrate: --diff and --interactive exclude each other\n"))


def test_answers():
    files = {"a.py": OLD + "x = 1\n" * 9 + "def f():\n    " + OLD, "b.py": OLD, "c.py": OLD}
    both = files["a.py"].replace("sgl_kernel", "sgl_kernel_jit")
    first = files["a.py"].replace("sgl_kernel", "sgl_kernel_jit", 1)
    second = OLD + files["a.py"][len(OLD):].replace("sgl_kernel", "sgl_kernel_jit")
    for answers, a, b, c in (
        ("yyyy", both, NEW, NEW), ("nnnn", files["a.py"], OLD, OLD), ("ynyn", first, NEW, OLD), ("nyny", second, OLD, NEW),
        ("ayn", both, NEW, OLD), ("nayy", second, NEW, NEW), ("dyn", files["a.py"], NEW, OLD), ("ydnn", first, OLD, OLD),
        ("yq", first, OLD, OLD), ("q", files["a.py"], OLD, OLD), ("yyq", both, OLD, OLD), ("Y?yNx", None, None, None), ("y\x04", first, OLD, OLD),
    ):
        with Tree(files) as tree:
            terminal = Terminal(tree, ".")
            if a is None:  # capitals and help
                shown = terminal.answer("Y", "?", "bla", "y", "N", "", "q")
                equal(shown.count("y - make this change"), 3)
                equal((tree.get("a.py"), tree.get("b.py"), tree.get("c.py")), (both, OLD, OLD))
                continue
            shown = terminal.answer(*answers)
            equal((answers, tree.get("a.py"), tree.get("b.py"), tree.get("c.py")), (answers, a, b, c))
            left = [a, b, c].count(OLD) + {files["a.py"]: 2, first: 1, second: 1}.get(a, 0)
            # One of two in a file, and the other needs a person: old and new beside each other may be meant.
            equal((answers, terminal.status), (answers, 3 if a in (first, second) else 1 if left else 0))
            contains(shown, f"{left} live use")
            if answers == "yyyy":
                contains(shown, "@@ -1,4 +1,4 @@\n-from sgl_kernel import dsv3_router_gemm\n+from sgl_kernel_jit import dsv3_router_gemm\n x = 1\n")
                contains(shown, "a.py: make this change (1 of 2) [y,n,a,d,q,?]? ")
                contains(shown, "a.py: make this change (2 of 2) [y,n,a,d,q,?]? ")
                equal("\x1b" in shown, False)


def test_edits_that_belong_together():
    """The uses of one import statement are one change; each C++ call is one, and the include comes with the first that is made."""
    qualified = "import sgl_kernel\nx = 1\n" + "y = 1\n" * 9 + "sgl_kernel.dsv3_router_gemm(a)\nsgl_kernel.dsv3_fused_a_gemm(b)\n"
    with Tree({"a.py": qualified}) as tree:
        shown = Terminal(tree, ".").answer("y")
        contains(shown, "(1 of 1)")
        equal(tree.run("scan", *ARGS, ".").returncode, 0)
    for answers, calls, status in (("nyn", 1, 1), ("yyy", 3, 0), ("nnn", 0, 1), ("na", 2, 1)):
        with Tree({"a.cc": CALLS}) as tree:
            terminal = Terminal(tree, ".")
            terminal.answer(*answers)
            text = tree.get("a.cc")
            equal((answers, text.count("sgl_kernel_jit::"), text.count("sgl_kernel_jit/torch.h"), terminal.status),
                  (answers, calls, int(calls > 0), status))


def test_interrupt_at_the_question():
    with Tree({"a.py": OLD, "b.py": OLD}) as tree:
        terminal = Terminal(tree, ".")
        terminal.read("? ")
        os.write(terminal.end, b"y\n")
        terminal.text = ""
        terminal.read("b.py: make")
        terminal.process.send_signal(signal.SIGINT)
        terminal.finish()
        equal((terminal.status, tree.get("a.py"), tree.get("b.py")), (-signal.SIGINT, NEW, OLD))


def test_colour():
    with Tree({"a.py": OLD}) as tree:
        environment = {"TERM": "xterm"}
        contains(Terminal(tree, ".", environment=environment).answer("n"), "\x1b[31m-from sgl_kernel")
        equal("\x1b" in Terminal(tree, ".", environment={**environment, "NO_COLOR": "1"}).answer("n"), False)


def test_interactive_in_a_dirty_tree():
    with Tree({"a.py": OLD}) as tree:
        git(tree, "init", "-q")
        terminal = Terminal(tree, ".")
        contains(terminal.finish(), "is not in git yet")
        equal(terminal.status, 8)


# --- other backends ----------------------------------------------------------------------------------------------------

def test_backends_without_a_target_stay():
    files = {
        "a.mu": CALLS, "csrc/common_extension_musa.cc": CALLS, "csrc/musa/x.cu": CALLS, "x.hip": CALLS, "hip/x.cc": CALLS, "src/x_rocm.cc": CALLS,
        "rocm/x.cu": CALLS, "xpu/x.cpp": CALLS, "npu/x.cpp": CALLS,
        **{f"{vendor}_{form}.py": text for vendor in ("musa", "hip", "rocm", "xpu", "npu") for form, text in (
            ("branch", f"if is_{vendor}():\n    from sgl_kernel import dsv3_router_gemm\nelse:\n    dsv3_router_gemm = None\n"),
            ("flag", f"_is_{vendor} = check()\nif _is_{vendor}:\n    from sgl_kernel import dsv3_router_gemm\n"),
            ("use", f"import sgl_kernel\nif torch.version.{vendor}:\n    sgl_kernel.dsv3_router_gemm(a, b)\n"))},
    }
    with Tree(files) as tree:
        before = snapshot(tree)
        for more in ([], ["--unsafe"]):
            for to in ("jit", "sglang@0.5.18"):
                done = tree.run("fix", "--kernel", "0.4.6", "--to", to, *more, ".")
                equal((done.returncode & 16, snapshot(tree) == before), (0, True))
                equal(tree.run("fix", "--diff", "--kernel", "0.4.6", "--to", to, *more, ".").out, "")


# --- writing -----------------------------------------------------------------------------------------------------------

def test_leftovers_are_no_files():
    with Tree({".sgl-migrate-1-0.tmp": OLD, "a.py": OLD}) as tree:
        equal(tree.rows(), ["a.py:1 dsv3_router_gemm rewrite"])
        fixes(tree, ".")
        equal(sorted(snapshot(tree)), ["a.py"])


def test_killed_at_any_moment():
    """kill -9: every file is the old or the new one, and another fix does the rest and clears up."""
    files = {f"{folder}/{i}.py": OLD + "# " + "x" * 20000 + "\n" for folder in "ab" for i in range(40)}
    new = {path: text.replace("sgl_kernel", "sgl_kernel_jit").encode() for path, text in files.items()}
    old = {path: text.encode() for path, text in files.items()}
    kills = between = 0
    with Tree(files) as tree:
        for turn in range(12):
            for path, text in files.items():
                tree.put(path, text)
            process = subprocess.Popen([TOOL, "fix", *ARGS, "."], cwd=tree.path, stdout=subprocess.PIPE)
            process.stdout.readline()  # at work
            time.sleep(turn * 0.002)
            process.kill()
            process.stdout.close()
            kills += process.wait() == -signal.SIGKILL
            now = {path: text for path, text in snapshot(tree).items() if ".tmp" not in path}
            equal(sorted(now), sorted(old))
            equal([path for path in now if now[path] not in (old[path], new[path])], [])
            between += any(now[path] == new[path] for path in now) and any(now[path] == old[path] for path in now)
        tree.run("fix", *ARGS, ".")
        equal(snapshot(tree), new)
    equal((kills > 0, between > 0), (True, True))


def test_full_disk():
    with Tree({"mount/.keep": ""}) as tree:
        if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", tree.path / "mount"], capture_output=True).returncode:
            raise Skip("a small file system cannot be mounted here")
        try:
            tree.put("mount/a.py", OLD + "# " + "x" * 20000 + "\n")
            tree.put("mount/b.py", OLD)
            try:
                with open(tree.path / "mount/fill", "wb", buffering=0) as file:
                    while True:
                        file.write(b"x" * 4096)
            except OSError:
                pass
            before = snapshot(tree)
            done = tree.run("fix", *ARGS, "mount/a.py")
            equal((done.returncode & 16, snapshot(tree)), (16, before))
            contains(done.err, "mount/a.py: not fixed: writing failed: No space left on device; the file is unchanged\n")
            (tree.path / "mount/fill").unlink()
            fixes(tree, "mount")
        finally:
            subprocess.run(["umount", tree.path / "mount"], check=True)


def test_files_that_nobody_may_write():
    with Tree({"a.py": OLD, "ro/b.py": OLD}) as tree:
        (tree.path / "a.py").chmod(0o444)
        (tree.path / "ro").chmod(0o555)
        if os.geteuid() == 0:
            if not shutil.which("setpriv"):
                raise Skip("no setpriv")
            (tree.path).chmod(0o777)
            user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]
        else:
            user = []
        try:
            done = subprocess.run([*user, TOOL, "fix", *ARGS, "."], cwd=tree.path, capture_output=True)
            equal((done.returncode & 16, tree.get("a.py"), tree.get("ro/b.py")), (16, OLD, OLD))
            contains(done.stderr.decode(), "a.py: not fixed: is read-only for you; make it writable and run again\n")
            contains(done.stderr.decode(), "ro/b.py: not fixed: ")
        finally:
            (tree.path / "ro").chmod(0o755)


def test_names_that_are_no_text():
    with Tree() as tree:
        name = os.fsencode(tree.path) + b"/bad-\xff\xfe.py"
        with open(name, "w") as file:
            file.write(OLD)
        commit(tree)
        apply(tree, patch_of(tree, "."))
        equal(open(name).read(), NEW)
        git(tree, "checkout", "-q", ".")
        fixes(tree, ".")
        equal(open(name).read(), NEW)


def test_a_file_that_vanishes_or_changes():
    """A tree under a compiler or an editor: what is not as it was analysed is left alone."""
    with Tree({f"{i:03}.py": OLD for i in range(200)}) as tree:
        process = subprocess.Popen([TOOL, "fix", *ARGS, "."], cwd=tree.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.readline()
        tree.put("199.py", "x = 1\n")
        (tree.path / "198.py").unlink()
        out, err = process.communicate()
        if b"fixed 199.py" in out:
            raise Skip("fix was faster than this test")
        equal(process.returncode & 16, 16)
        equal(err.decode().splitlines(), ["sgl-migrate: 198.py: not fixed: cannot be opened: No such file or directory",
                                          "sgl-migrate: 199.py: not fixed: changed after it was analysed; run again"])
        equal(tree.get("199.py"), "x = 1\n")


main(globals())
