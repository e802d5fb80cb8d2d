#!/usr/bin/env python3
"""usage: kernel_diffs.py BUILD [FOLDER]

sgl-migrate catalog diff on the real kernel wheels, release by release: what it finds is what catalog/removals.yaml says, but for
what is explained below. Prints the rows of the table in docs/census.md. The wheels are PyPI's, 6.1 GB to fetch, two of them
on disk at a time; those that lie in FOLDER are used and stay."""
import json, os, pathlib, subprocess, sys, tempfile, time

BUILD = pathlib.Path(sys.argv[1]).resolve()
KEPT = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else None
MEMORY_MOST = 150 << 10  # KiB
WHEELS = {  # release: sha256 of the wheel for x86_64
    "0.3.21": "57dfb3a2a3cd759f499c32e2bad5f6489b7c58f7f9a84ee00c53ec92d303aaab",
    "0.4.0": "859eb83c312b327d1998ba05b7cfb759d438192117fded43d475ef9f32f284d8",
    "0.4.1": "64ab5df34264cdffc36e25fee429dcafe2e204cae73cc1f9736a4e5ab97aa206",
    "0.4.1.post1": "763e0853be610cb5be77569c6fbb4245eabde33f71424dd6f5c9d52665eec0cb",
    "0.4.2": "11e8198d6f6ff47df2ff445e3add666897d7d75fddbed9ff862e7b42fd75530c",
    "0.4.2.post1": "4978f007738d3aa240e10632976b3228afede82d06a5014afff0a775344387b8",
    "0.4.2.post2": "f275ce01010933c4ea655e832a05442b766ab8f23dcfd6ff678b15e295d42203",
    "0.4.3": "636a2b05fdef7cc0f7d9af98a6eec0d3470845d6ea32251c52d359d877893c87",
    "0.4.4": "558bc7035e3c0a795e8c3eca3cc29e189c7d29f1db2471a0a71b9156a8ee7fa1",
    "0.4.5": "5927a14dfff92ced8b1f7c7d5844144bc574ec58e604d4fd53e6f53c709003a8",
    "0.4.6": "30127466b4a8058043c71f0f848ebbf33c9f2e20ebb8fc09a0abf8a0104e32d4",
    "0.4.6.post1": "5fee1007113c988bf6d448eca4706f7959631d449a429eb790a70bf89ab0ef04",
    "0.4.7": "666f39de214a1558c5a98f43e6562e1032d8d08823b61f6a307830882f3241ce",
    "0.4.8": "0d70d6dab5e486d8d6e476e34ac288ea751aec413dabeea4ee381bc08d0d130b",
    "0.4.9": "bc3ff04f576484ff52b68ea58423b2da5943f6bcb036a6eb395e049268c8e51c",
    "0.4.10": "043cbe4a10e7887ea1b25599b729ff1ce115a0d5217b2c177aff9f9ae5327724",
}
# What the catalog does not say, and why that is right.
EXPLAINED = {
    ("0.4.0", "flash_attn_varlen_func", "first without it: 0.4.0, but NEW has it"):
        "the file sgl_kernel/_fa4_interface.py is there, but imports flash_attn_origin, which the wheel has no longer",
    ("0.4.1", "sgl_kernel._fa4_interface.flash_attn_varlen_func", "otherwise"): "the file left; since 0.4.0 it could not be imported",
    ("0.4.7", "sgl_kernel.sparse_flash_attn.maybe_contiguous", "unknown"): "a helper of the module that left with it, no kernel",
}
# Removed names (those of a row are one each in Python, operators, C++ functions of an operator), and names in Python and operators
# that old calls no longer fit; found in the wheels once, and compared with the history of the sources.
FOUND = {
    "0.4.0": (18, 18, 18, 0, 0), "0.4.1": (12, 6, 5, 0, 0), "0.4.1.post1": (0, 0, 0, 0, 0), "0.4.2": (0, 0, 0, 0, 0), "0.4.2.post1": (0, 0, 0, 0, 0),
    "0.4.2.post2": (0, 0, 0, 0, 0), "0.4.3": (0, 0, 0, 0, 1), "0.4.4": (3, 2, 3, 2, 1), "0.4.5": (4, 4, 4, 1, 1), "0.4.6": (4, 4, 4, 0, 0),
    "0.4.6.post1": (0, 0, 0, 0, 0), "0.4.7": (10, 8, 9, 2, 0), "0.4.8": (0, 5, 5, 6, 0), "0.4.9": (0, 0, 0, 0, 0), "0.4.10": (0, 0, 0, 0, 0),
}


def fetch(version, folder):
    name = f"sgl{'ang' if version > '0.4' else ''}_kernel-{version}-cp310-abi3-manylinux2014_x86_64.whl"
    if KEPT and (KEPT / name).exists():
        return KEPT / name
    pin = folder / "pin"
    pin.write_text(f"{name.split('-')[0].replace('_', '-')}=={version} --hash=sha256:{WHEELS[version]}\n")
    done = subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "-q", "--no-deps", "--no-cache-dir", "--only-binary", ":all:",
                           "--platform", "manylinux2014_x86_64", "--python-version", "3.11", "--require-hashes", "-d", folder, "-r", pin], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"kernel_diffs: {version}: {(done.stderr.strip().splitlines() or ['no output'])[-1]}")
    return folder / name


def compare(old, new, version):
    """Faults, and KiB of memory."""
    begin = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        child = subprocess.Popen([BUILD / "bin" / "sgl-migrate", "catalog", "diff", "--format", "json", old, new], stdout=out, stderr=errors)
        _, status, usage = os.wait4(child.pid, 0)
        seconds, status = time.monotonic() - begin, os.waitstatus_to_exitcode(status)
        out.seek(0)
        errors.seek(0)
        if status & ~3:
            return [f"status {status}: {errors.read().decode(errors='replace').strip()}"], usage.ru_maxrss
        log, faults, reasons = json.load(out), [], []
    changes = [c for c in log["changes"] if not c["alias"]]
    odd = [(version, c["old"]["name"], c["catalog"]["says"]) for c in changes if c["catalog"] and c["catalog"]["says"] != "agrees"]
    odd += [(version, c["symbol"], c["what"]) for c in log["contradictions"]]
    for one in odd:
        if one in EXPLAINED:
            reasons.append(f"{one[1]}: {EXPLAINED[one]}")
        else:
            faults.append(f"not explained: {one[1]}: {one[2]}")
    faults += [f"not there any more: {key[1]}: {key[2]}" for key in EXPLAINED if key[0] == version and key not in odd]

    def count(layer, kinds, asked):
        return sum(c["layer"] == layer and c["kind"] in kinds and (not asked or bool(c["catalog"] and not c["old"]["module"])) and c["breaks"] for c in changes)
    found = (*(count(layer, ("removed",), True) for layer in ("python", "operator", "cxx")), *(count(layer, ("changed",), False) for layer in ("python", "operator")))
    if found != FOUND[version]:
        faults.append(f"found {found}, it was {FOUND[version]}")
    if usage.ru_maxrss > MEMORY_MOST:
        faults.append(f"{usage.ru_maxrss >> 10} MiB of memory")
    print(f"| {log['old']['version']} to {version} | {' | '.join(map(str, found))} | {'; '.join(reasons)} | {seconds:.0f} s, {usage.ru_utime + usage.ru_stime:.0f} s of processor |", flush=True)
    return faults, usage.ru_maxrss


def main():
    bad, most, releases = 0, 0, list(WHEELS)
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        folder = pathlib.Path(folder)
        old = fetch(releases[0], folder)
        for version in releases[1:]:
            new = fetch(version, folder)
            faults, memory = compare(old, new, version)
            most = max(most, memory)
            for fault in faults:
                bad += 1
                print(f"FAIL {version}: {fault}", flush=True)
            if old.parent == folder:
                old.unlink()
            old = new
    print(f"kernel_diffs: {len(releases) - 1} steps, {bad} faults, at most {most >> 10} MiB of memory")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
