#!/usr/bin/env python3
"""The walk-through docs/rollout.md, followed from top to bottom: its commands run in one shell, in their order, and have to print
what it says. `test_rollout.py update` writes what they print now into the file instead.

A block ```console has commands (lines that begin with "$ ", and "> " where they go on) and their output. What differs from run to
run and from machine to machine (dates, times, process numbers, folders, the host's name) is replaced on both sides."""
import os, pathlib, re, shutil, socket, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = pathlib.Path(os.environ["BUILD_DIR"]).resolve()
TORCH = pathlib.Path(os.environ.get("SGL_TEST_TORCH") or BUILD / "torch-2.11.0")
PAGE = ROOT / "docs" / "rollout.md"
BLOCK = re.compile(r"^```console\n(.*?)^```\n", re.M | re.S)
MARK = "--- end of a command ---"


def commands_of(block):
    """[(command, output)]"""
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append(([line[2:]], []))
        elif line.startswith(">") and found and not found[-1][1]:
            found[-1][0].append(line[2:])
        else:
            found[-1][1].append(line)
    return [("\n".join(command), "\n".join(output)) for command, output in found]


def shown(block):
    lines = []
    for command, output in block:
        lines += [(("> " if i else "$ ") + line).rstrip() for i, line in enumerate(command.split("\n"))]
        lines += output.split("\n") if output else []
    return "```console\n" + "".join(line + "\n" for line in lines) + "```\n"


def steady(text, folder):
    """What a reader of another day, on another machine, would see as the same."""
    text = text.replace(str(folder), "/home/you/rollout").replace(str(ROOT), "/home/you/sgl-kernel-compat").replace(socket.gethostname(), "node1")
    text = re.sub(r"\b20[23]\d-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d)?(?: ?UTC|Z)?)?", "2026-12-01", text)
    text = re.sub(r"\b\d+(\.\d+)? (ms|s)\b", r"1 \2", text)
    return re.sub(r"(node1|pid|process)([- ])\d+(-\d+)?", r"\1\g<2>1234", text)


def prepare(work):
    """A folder to work in, and a PATH with our commands and a Python that has torch, the package and a newer sgl_kernel."""
    site, bin_folder, home = work / "site", work / "bin", work / "home"
    for folder in (site, bin_folder, home, work / "rollout"):
        folder.mkdir()
    subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "-q", "--root-user-action=ignore", "--no-index", "--no-deps", "--target", site,
                    *BUILD.glob("wheel/*.whl")], check=True)
    for tool in ("sgl-compat", "sgl-jit", "sgl-migrate"):
        (bin_folder / tool).symlink_to(BUILD / "bin" / tool)
    (bin_folder / "python").write_text(f'#!/bin/sh\nexec {TORCH}/venv/bin/python "$@"\n')
    (bin_folder / "python").chmod(0o755)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SGL_", "PYTHON", "TORCH_", "RANK", "LOCAL_RANK", "SLURM_", "OMPI_", "XDG_"))}
    environment.update(PATH=f"{bin_folder}:{environment['PATH']}", HOME=str(home), PYTHONPATH=f"{site}:{HERE / 'stand_ins' / 'new'}", TERM="dumb",
                       LC_ALL="C.UTF-8", PYTHONWARNINGS="ignore:Failed to initialize NumPy", SGL_KERNEL_JIT_CACHE_DIR=str(work / "cache"), SGL_KERNEL_JIT_BACKEND="reference", PS4="")
    return work / "rollout", environment


def run(commands, folder, environment):
    """What each command of the list prints, on both streams in their order."""
    script = "exec 2>&1\n" + "".join(f"{command}\nstatus=$?; [ $status = 0 ] || echo \"(exit status $status)\"; echo '{MARK}'\n" for command in commands)
    done = subprocess.run(["bash", "-c", script], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, timeout=600)
    parts = done.stdout.split(MARK + "\n")
    assert len(parts) == len(commands) + 1 and not parts[-1], done.stdout[-2000:]
    return [part.rstrip("\n") for part in parts[:-1]]


def main():
    installed = subprocess.run([sys.executable, HERE / "install_torch.py", "2.11.0", TORCH], capture_output=True, text=True)
    if installed.returncode:
        print(f"skip rollout.walk_through: no torch here: {installed.stderr.strip()}\nrollout: 0 passed, 0 failed, 1 skipped")
        return 0
    page = PAGE.read_text()
    blocks = [commands_of(match.group(1)) for match in BLOCK.finditer(page)]
    commands = [command for block in blocks for command, _ in block]
    work = pathlib.Path(tempfile.mkdtemp(prefix="sgl-rollout-"))
    try:
        folder, environment = prepare(work)
        outputs = [steady(output, folder) for output in run(commands, folder, environment)]
    finally:
        shutil.rmtree(work)
    assert len(commands) > 10, commands
    if sys.argv[1:] == ["update"]:
        fresh = iter(outputs)
        updated = iter([shown([(command, next(fresh)) for command, _ in block]) for block in blocks])
        PAGE.write_text(BLOCK.sub(lambda match: next(updated), page))
        print(f"{PAGE.name}: {len(commands)} commands")
        return 0
    failed = 0
    for (command, want), have in zip((pair for block in blocks for pair in block), outputs):
        if have != steady(want, folder):
            failed += 1
            print(f"FAIL rollout: {command}\n  the page says:\n{want}\n  it prints:\n{have}")
    print(f"rollout: {len(commands) - failed} passed, {failed} failed")
    return failed != 0


sys.exit(main())
