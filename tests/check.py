#!/usr/bin/env python3
"""Run the test suites and add up their closing lines.

usage: check.py --build DIR [--sanitized DIR] [--threads DIR] [--gpu] [-k SUBSTRING] [-v] [--no-skips]

A suite is a program built from tests/MODULE/test_*.c, a script tests/MODULE/test_*.py or test_*.sh, or the case folders
against sgl-migrate. Each prints, as its last line, `N passed, N failed` or `N passed, N failed, N skipped`, with or
without `NAME: ` in front. A suite that dies, runs longer than its limit or has no such line counts as one failure. What
was skipped is listed again at the end, with its reason. Exit status 0 when nothing failed and something passed; with
--no-skips also nothing may be skipped.
"""
import argparse, concurrent.futures, os, pathlib, re, subprocess, sys, time

ROOT = pathlib.Path(__file__).resolve().parent
CLOSING = re.compile(r"(?:\S+: )?(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$")
MODULES = ("catalog", "jit", "shim", "scanner", "product", "python")
FOREIGN = ("jit/test_nvrtc",)  # its time goes into NVRTC, where sanitizers see nothing
THREADED = ("shim/test_call_log", "shim/test_usage", "shim/test_usage_files", "shim/test_warn")  # what ThreadSanitizer (--threads) looks at
LIMIT_S = 1200  # the slowest suite is the cases under sanitizers


def suites(build, gpu):
    modules = ("gpu",) if gpu else MODULES
    for module in modules:
        for source in sorted((ROOT / module).glob("test_*.c")):
            yield f"{module}/{source.stem}", [str(build / "tests" / module / source.stem)]
        for source in sorted((ROOT / module).glob("test_*.py")):
            yield f"{module}/{source.stem}", [sys.executable, str(source)]
        for source in sorted((ROOT / module).glob("test_*.sh")):
            yield f"{module}/{source.stem}", ["sh", str(source)]
    if not gpu:
        yield "scanner/cases", [sys.executable, str(ROOT / "cases" / "run.py"), str(build / "bin" / "sgl-migrate"), str(ROOT / "cases")]


def run(name, command, build, verbose):
    environment = dict(os.environ, BUILD_DIR=str(build.resolve()))
    start = time.monotonic()
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, timeout=LIMIT_S)
        output, status = done.stdout.decode(errors="replace"), done.returncode
    except subprocess.TimeoutExpired as e:
        output, status = (e.stdout or b"").decode(errors="replace") + f"\nstopped after {LIMIT_S} s\n", 1
    except OSError as e:
        output, status = str(e) + "\n", 1
    lines = output.rstrip().splitlines()
    closing = CLOSING.match(lines[-1]) if lines else None
    passed, failed, skipped = (int(x or 0) for x in closing.groups()) if closing else (0, 0, 0)
    if status != 0 and failed == 0:
        failed = 1
        output += f"\n{name}: ended with status {status}\n"
    if not closing and failed == 0:
        failed = 1
        output += f"\n{name}: no closing line\n"
    text = (f"{'FAIL' if failed else 'skip' if skipped and not passed else 'ok':4} {name:40} {passed:4} passed {failed:3} failed"
            f"{f' {skipped:3} skipped' if skipped else ''}  {time.monotonic() - start:6.1f} s\n")
    if failed or verbose:
        text += "".join("     | " + line + "\n" for line in output.splitlines()[-200:])
    reasons = [line for line in lines if line.startswith("skip ")]
    return passed, failed, skipped, reasons, text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--sanitized", type=pathlib.Path)
    parser.add_argument("--threads", type=pathlib.Path)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("-k", default="")
    parser.add_argument("-v", action="store_true")
    parser.add_argument("--no-skips", action="store_true")
    opt = parser.parse_args()
    plan = [(name, command, opt.build) for name, command in suites(opt.build, opt.gpu)]
    if opt.sanitized:  # the C suites and the cases once more; scripts run the same code in the plain build
        plan += [(f"sanitized {name}", command, opt.sanitized) for name, command in suites(opt.sanitized, False)
                 if (command[0].startswith(str(opt.sanitized)) and name not in FOREIGN) or name == "scanner/cases"]
    if opt.threads:
        plan += [(f"threads {name}", command, opt.threads) for name, command in suites(opt.threads, False) if name in THREADED]
    plan = [one for one in plan if opt.k in one[0]]
    total, reasons = [0, 0, 0], []
    # On a GPU one after the other: a suite may fill the card, and its times are printed.
    with concurrent.futures.ThreadPoolExecutor(1 if opt.gpu else os.cpu_count()) as pool:
        for *counts, why, text in pool.map(lambda one: run(*one, opt.v), plan):
            print(text, end="", flush=True)
            total = [a + b for a, b in zip(total, counts)]
            reasons += why
    for line in reasons:
        print(line)
    print(f"{total[0]} passed, {total[1]} failed" + (f", {total[2]} skipped" if total[2] else ""))
    return 1 if total[1] or not total[0] or (opt.no_skips and total[2]) else 0


sys.exit(main())
