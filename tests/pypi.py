"""Packages from PyPI as they are, without running anything of theirs."""
import os, pathlib, subprocess, sys

# A stand-in for the packages' build backends: pip asks each for its metadata, which a source package has ready.
BACKEND = '''import pathlib, re, sys
__legacy__ = sys.modules[__name__]
def get_requires_for_build_wheel(config_settings=None):
    return []
def prepare_metadata_for_build_wheel(folder, config_settings=None):
    text = pathlib.Path("PKG-INFO").read_text()
    name, version = (re.search(f"^{key}: (.*)$", text, re.M)[1].replace("-", "_") for key in ("Name", "Version"))
    target = pathlib.Path(folder) / f"{name}-{version}.dist-info"
    target.mkdir()
    (target / "METADATA").write_text(text)
    return target.name
'''


def pip(*arguments, **options):
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode:
        sys.exit(f"{pathlib.Path(sys.argv[0]).stem}: {' '.join(command)}: {(done.stdout.strip().splitlines() or ['no output'])[-1]}")


def download_sources(requirements, folder):
    """The source packages of a requirements file with hashes."""
    backend = folder / "backend" / "setuptools"
    backend.mkdir(parents=True, exist_ok=True)
    (backend / "__init__.py").touch()
    (backend / "build_meta.py").write_text(BACKEND)
    pip("download", "--no-deps", "--no-build-isolation", "--no-binary", ":all:", "--require-hashes", "-r", requirements, "-d", folder,
        env={**os.environ, "PYTHONPATH": str(backend.parent)})


def download_wheels(requirements, folder):
    """The wheels of a requirements file with hashes, those for CPython 3.11 on Linux x86_64."""
    pip("download", "--no-deps", "--only-binary", ":all:", "--require-hashes", "--python-version", "3.11", "--implementation", "cp",
        "--abi", "cp311", "--abi", "abi3", "--abi", "none", "--platform", "manylinux_2_34_x86_64", "--platform", "any", "-r", requirements, "-d", folder)
