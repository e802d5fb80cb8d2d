"""What the scanner's Python tests share: run sgl-migrate of this build on a small tree, count tests."""
import json, os, pathlib, subprocess, sys, tempfile, urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from suite import main  # for the scripts that import this one

TOOL = os.environ.get("SGL_MIGRATE") or os.path.join(os.environ["BUILD_DIR"], "bin", "sgl-migrate")
ARGS = ["--kernel", "0.4.6", "--to", "jit"]


class Tree(tempfile.TemporaryDirectory):
    """A temporary folder with the given files: {path: text or bytes}."""

    def __init__(self, files=()):
        super().__init__(prefix="sgl-migrate-test-")
        self.path = pathlib.Path(self.name).resolve()
        for path, content in dict(files).items():
            self.put(path, content)

    def __enter__(self):
        return self

    def put(self, path, content):
        file = self.path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())

    def get(self, path):
        return (self.path / path).read_bytes().decode()

    def run(self, *args, **options):
        return run(*args, cwd=self.path, **options)

    def sarif(self, *args):
        done = self.run("scan", "--format", "sarif", *ARGS, *(args or ["."]))
        return json.loads(done.stdout)

    def rows(self, *args):
        """The results as "path:line symbol verdict"."""
        rows = []
        for result in self.sarif(*args)["runs"][0]["results"]:
            place = result["locations"][0]["physicalLocation"]
            rows.append("%s:%d %s %s" % (urllib.parse.unquote(place["artifactLocation"]["uri"]),
                                         place["region"]["startLine"], result["ruleId"], result["properties"]["verdict"]))
        return rows


def run(*args, **options):
    done = subprocess.run([TOOL, *map(str, args)], capture_output=True, timeout=120, **options)
    done.out, done.err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    if done.returncode < 0 or "Sanitizer" in done.err:
        raise AssertionError(f"sgl-migrate {' '.join(map(str, args))} died ({done.returncode}): {done.err}")
    return done


def equal(have, want):
    if have != want:
        raise AssertionError(f"\n  have: {have!r}\n  want: {want!r}")


def contains(have, part):
    if part not in have:
        raise AssertionError(f"\n  have: {have!r}\n  want within: {part!r}")
