#!/bin/sh
# usage: deps.sh FOLDER GRAMMAR_VERSION TREE_SITTER_VERSION PACKAGE...
# Installs what the build and the tests need: Debian packages with apt, and from PyPI, each pinned by version and
# SHA-256, the sources of tree-sitter and its Python grammar and (only where the machine has no NVRTC) NVRTC.
set -eu
export PIP_ROOT_USER_ACTION=ignore
folder=$1
grammar=$2
runtime=$3
shift 3
missing=
for p in "$@"; do
  dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing="$missing $p"
done
# A Python from elsewhere serves as well as Debian's.
python3 -c 'import venv, pip' 2>/dev/null && missing=$(echo "$missing" | sed 's/ python3[a-z-]*//g')
if [ -n "$missing" ]; then
  if [ "$(id -u)" != 0 ]; then
    echo "deps: missing packages:$missing" >&2
    echo "deps: run as root:  apt-get update && apt-get install -y --no-install-recommends$missing" >&2
    exit 1
  fi
  echo "deps: installing$missing"
  export DEBIAN_FRONTEND=noninteractive
  apt-get -qq update
  apt-get -qq install -y --no-install-recommends $missing >"$folder/apt.log" 2>&1 || { tail -n 20 "$folder/apt.log" >&2; exit 1; }
fi
if [ ! -f "$folder/tree_sitter_python-$grammar/src/parser.c" ] || [ ! -e "$folder/tree-sitter-headers/tree_sitter/parser.h" ]; then
  echo "deps: fetching tree-sitter $runtime and tree-sitter-python $grammar"
  pip="python3 -m pip --disable-pip-version-check --no-input -q"
  $pip install --no-deps --require-hashes -r scanner/requirements-sdist.txt --target "$folder/sdist-tools" --upgrade
  PYTHONPATH=$(cd "$folder" && pwd)/sdist-tools $pip download --no-deps --no-build-isolation --no-binary :all: \
    --require-hashes -r scanner/requirements-grammar.txt -d "$folder"
  tar -C "$folder" -xzf "$folder/tree_sitter_python-$grammar.tar.gz"
  tar -C "$folder" -xzf "$folder/tree-sitter-$runtime.tar.gz"
  # The grammar includes tree_sitter/parser.h and array.h, which its own package lacks.
  mkdir -p "$folder/tree-sitter-headers"
  ln -sfn "../tree-sitter-$runtime/tree_sitter/core/lib/src" "$folder/tree-sitter-headers/tree_sitter"
fi
# An NVRTC that knows all targets of the tests: 13.
have_nvrtc() {
  ldconfig -p | grep -q 'libnvrtc\.so\.13' && return 0
  for f in "${CUDA_HOME:-/usr/local/cuda}"/lib64/libnvrtc.so.13 /usr/local/cuda*/lib64/libnvrtc.so.13 "$folder"/nvrtc/nvidia/*/lib/libnvrtc.so.13; do
    [ -e "$f" ] && return 0
  done
  return 1
}
if ! have_nvrtc; then
  echo "deps: no NVRTC on this machine, fetching it"
  python3 -m pip install -q --disable-pip-version-check --no-deps --require-hashes -r jit/requirements-nvrtc.txt --target "$folder/nvrtc"
fi
