#!/usr/bin/env python3
"""usage: slurm.py BUILD   (make check-slurm)

Job arrays on a real Slurm: starts munged, slurmctld and slurmd with a configuration of their own in a temporary folder,
runs the scripts of docs/scale-out.md (also the one for GNU parallel), merges, compares with one scan, and stops
everything. A Slurm of the machine is not used and not touched.
"""
import getpass, os, pathlib, re, shutil, signal, socket, subprocess, sys, tempfile, time

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
os.environ["BUILD_DIR"] = str(BUILD)
from tool import TOOL, equal, main

CASES = pathlib.Path(__file__).resolve().parents[1] / "cases"
DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "scale-out.md"
OPTIONS = "--kernel 0.4.6 --to jit"
PATIENCE_S = 120  # for one step on a loaded machine


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def block(name):
    """The code block of the page that begins with this comment."""
    return re.search(rf"```\w*\n(#!/bin/(?:ba)?sh\n# {re.escape(name)}\n.*?)```", DOCS.read_text(), re.S)[1]


class Slurm:
    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="sgl-slurm-")
        self.path = pathlib.Path(self.folder.name)
        self.daemons = []
        self.environment = dict(os.environ, SLURM_CONF=str(self.path / "slurm.conf"), PATH=f"{BUILD / 'bin'}:{os.environ['PATH']}:/usr/sbin")
        host, user = socket.gethostname().split(".")[0], getpass.getuser()
        (self.path / "munge.key").write_bytes(os.urandom(128))
        (self.path / "munge.key").chmod(0o400)
        (self.path / "slurm.conf").write_text(f"""\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={self.path}/munge.socket
StateSaveLocation={self.path}/state
SlurmdSpoolDir={self.path}/spool
SlurmctldPidFile={self.path}/slurmctld.pid
SlurmdPidFile={self.path}/slurmd.pid
SlurmctldLogFile={self.path}/slurmctld.log
SlurmdLogFile={self.path}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MailProg=/bin/true
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
""")
        for name in ("state", "spool"):
            (self.path / name).mkdir()
        p = self.path
        self.start("munged", "-F", "--force", f"--key-file={p}/munge.key", f"--socket={p}/munge.socket", f"--pid-file={p}/munge.pid",
                   f"--seed-file={p}/munge.seed", f"--log-file={p}/munge.log")
        self.wait(lambda: (p / "munge.socket").exists(), "munged's socket")
        self.start("slurmctld", "-D", "-i")
        self.wait(lambda: self.run("scontrol", "ping").returncode == 0, "slurmctld")
        self.start("slurmd", "-D", "-N", host)
        self.wait(lambda: "idle" in self.run("sinfo", "-h", "-o", "%T").stdout, "an idle node")

    def start(self, *command):
        log = open(self.path / f"{command[0]}.out", "w")
        self.daemons.append(subprocess.Popen(command, env=self.environment, stdout=log, stderr=log, start_new_session=True))
        log.close()

    def run(self, *command):
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=PATIENCE_S)

    def wait(self, ready, what):
        end = time.monotonic() + PATIENCE_S
        while not ready():
            dead = [d.args[0] for d in self.daemons if d.poll() is not None]
            if dead or time.monotonic() > end:
                logs = "\n".join(f"--- {f.name}\n{f.read_text(errors='replace')[-2000:]}" for f in sorted(self.path.glob("*.*")) if f.suffix in (".log", ".out"))
                raise AssertionError(f"no {what}; ended: {dead}\n{logs}")
            time.sleep(0.2)

    def submit(self, script, array, *arguments, cwd):
        """Submits an array job and waits for the end of all its tasks; returns their states."""
        path = cwd / "job.sh"
        path.write_text(script)
        done = self.run("sbatch", "--parsable", f"--array={array}", f"--chdir={cwd}", "--output=task-%a.out", str(path), *map(str, arguments))
        equal((done.returncode, done.stderr), (0, ""))
        job = done.stdout.strip()
        states = lambda: re.findall(r"JobState=(\S+)", self.run("scontrol", "show", "job", job).stdout)
        self.wait(lambda: states() and not set(states()) & {"PENDING", "RUNNING", "CONFIGURING", "COMPLETING"}, f"end of job {job}: {states()}")
        print(f"job {job}, array {array}: {' '.join(sorted(states()))}", flush=True)
        return states()

    def close(self):
        for daemon in reversed(self.daemons):
            daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        self.folder.cleanup()


def tool(*arguments, cwd):
    done = subprocess.run([TOOL, *map(str, arguments)], cwd=cwd, capture_output=True)
    equal(b"Sanitizer" in done.stderr, False)
    return done


slurm = None


def test_shards_of_one_tree():
    cwd = slurm.path / "shards"
    cwd.mkdir()
    equal(slurm.submit(block("shards.sh: one tree in parts"), "1-4", CASES / "python", cwd=cwd), ["COMPLETED"] * 4)
    whole = tool("scan", "--format", "sarif", *OPTIONS.split(), CASES / "python", cwd=cwd)
    merged = tool("merge", *sorted(cwd.glob("shard-*.sarif")), cwd=cwd)
    equal((merged.stderr, merged.returncode), (b"", whole.returncode))
    equal(merged.stdout == whole.stdout and len(whole.stdout) > 100000, True)
    print(f"4 shards, {len(merged.stdout)} bytes merged, the same as of one scan; status {merged.returncode}", flush=True)


def test_one_tree_a_task():
    cwd = slurm.path / "trees"
    cwd.mkdir()
    trees = sorted(p for p in (CASES / "python").iterdir() if (p / "input").is_dir())[:12]
    (cwd / "trees.txt").write_text("".join(f"{tree}/input\n" for tree in trees))
    equal(slurm.submit(block("trees.sh: one tree a task"), f"1-{len(trees)}", "trees.txt", cwd=cwd), ["COMPLETED"] * len(trees))
    logs = sorted(cwd.glob("tree-*.sarif"), key=lambda p: int(p.stem.split("-")[1]))
    merged = tool("merge", *logs, cwd=cwd)
    whole = tool("scan", "--format", "sarif", *OPTIONS.split(), *(f"{tree}/input" for tree in trees), cwd=cwd)
    equal((len(logs), merged.returncode, merged.stdout == whole.stdout), (len(trees), whole.returncode, True))


def test_gnu_parallel():
    cwd = slurm.path / "parallel"
    cwd.mkdir()
    (cwd / "parallel.sh").write_text(block("parallel.sh: one tree a task"))
    trees = sorted(p / "input" for p in (CASES / "python").iterdir() if (p / "input").is_dir())[:12]
    done = subprocess.run(["bash", "parallel.sh", *map(str, trees)], cwd=cwd, env=slurm.environment, capture_output=True, text=True)
    whole = tool("scan", "--format", "sarif", *OPTIONS.split(), *trees, cwd=cwd)
    equal((done.returncode, done.stderr, (cwd / "all.sarif").read_bytes() == whole.stdout), (whole.returncode, "", True))


def test_a_lost_task_is_said():
    cwd = slurm.path / "lost"
    cwd.mkdir()
    script = block("shards.sh: one tree in parts").replace("set -u", "set -u\n[ $SLURM_ARRAY_TASK_ID != 2 ] || exit 1")
    equal(sorted(slurm.submit(script, "1-3", CASES / "python", cwd=cwd)), ["COMPLETED", "COMPLETED", "FAILED"])
    merged = tool("merge", *sorted(cwd.glob("shard-*.sarif")), cwd=cwd)
    equal((merged.returncode & 4, merged.stderr.decode()), (4, f"sgl-migrate: 1 of 3 shards are missing, the first is 2/3, of file://{CASES}/python/\n"))


try:
    missing = [name for name in ("munged", "slurmctld", "slurmd", "sbatch", "parallel") if not shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin")]
    if missing:
        sys.exit(f"slurm.py: not installed: {' '.join(missing)}; run as root: apt-get install -y --no-install-recommends slurm-wlm munge parallel")
    slurm = Slurm()
    main(globals())
finally:
    if slurm:
        slurm.close()
