#!/bin/sh
# usage: run.sh BUILD_DIR
# The main job, once, on the sample project beside this script: find, show, fix a copy, and let what is not fixed run on.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
build=$(CDPATH= cd -- "$1" && pwd)
work=$build/run
rm -rf "$work"
mkdir -p "$work"
cp -R "$here/project" "$work/project"
cd "$work"

if [ -t 1 ]; then bold=$(printf '\033[1m') plain=$(printf '\033[0m'); else bold= plain=; fi
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
shown() { printf '%s$ %s%s\n' "$bold" "$*" "$plain"; }

# Exit status of sgl-migrate: bits 1 and 2 say that something was found, everything above is trouble.
migrate() {
  shown "sgl-migrate $*"
  status=0
  "$build/bin/sgl-migrate" "$@" || status=$?
  [ "$status" -le 3 ] || { echo "run: sgl-migrate ended with status $status" >&2; exit 1; }
}

say "1. What in this project breaks with kernel 0.4.6?"
migrate scan --kernel 0.4.6 --to jit project

say "2. Rewrite what is safe, in a copy, and show the difference."
cp -R project before
migrate fix --kernel 0.4.6 --to jit project
diff -ru before project > fix.diff || true
cat fix.diff
[ -s fix.diff ] || { echo "run: fix changed nothing" >&2; exit 1; }

say "3. A binary that was compiled against the old library finds its functions again."
lib=$build/lib
${CXX:-g++} -O1 -fPIC -shared -o liblegacy_caller.so before/csrc/legacy_caller.cc -L"$lib" -lsgl_kernel_compat -Wl,-rpath,"$lib"
export SGL_KERNEL_JIT_BACKEND=reference LD_LIBRARY_PATH="$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
# A torch that `make check` has put into the build folder serves as well as one that is installed.
python=python3
if ! $python -c 'import torch' 2>/dev/null && [ -x "$build/torch/python" ]; then python=$build/torch/python; fi
if "$python" -c 'import torch' 2>/dev/null; then
  shown "python3 through_torch.py    # torch $("$python" -c 'import torch; print(torch.__version__)')"
  "$python" "$here/through_torch.py" "$lib" "$work/liblegacy_caller.so"
else
  echo "(No torch can be imported here. Without one there are no tensors, so the call warns and throws a clear error in place of"
  echo "an undefined symbol, and the numbers below come through the C interface. With a torch they come through the old names.)"
  ${CXX:-g++} -O1 -o legacy "$here/legacy.cc" -L. -llegacy_caller -Wl,-rpath,"$work" -Wl,-rpath-link,"$lib"
  shown "./legacy"
  ./legacy
  ${CC:-gcc} -std=c11 -O1 -I"$here/../../jit/include" -o c_api "$here/c_api.c" -L"$lib" -lsgl_kernel_jit -Wl,-rpath,"$lib"
  shown "./c_api    # dsv3_router_gemm, CPU reference backend"
  ./c_api
fi
