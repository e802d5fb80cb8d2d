#!/bin/sh
# `make run` once more, with what it must have shown.
set -u
root=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
build=${BUILD_DIR:?set by check.py}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=0
wants() { # wants NAME PATTERN
  if grep -q -e "$2" "$log"; then passed=$((passed + 1)); else
    failed=$((failed + 1))
    echo "FAIL sample.$1: not in the output: $2"
  fi
}
if sh "$root/tests/sample/run.sh" "$build" >"$log" 2>&1; then passed=1; else
  failed=1
  echo "FAIL sample.run: ended with an error"
  sed 's/^/     /' "$log"
fi
wants finds_python 'project/decode/gate.py:5'
wants finds_operator 'project/decode/graph.py:13'
wants finds_cxx 'project/csrc/decode_step.cu:8'
wants finds_build_entry 'project/CMakeLists.txt:8'
wants rewrites_python '^+from sgl_kernel_jit import dsv3_router_gemm  # decode only'
wants rewrites_cxx '^+  sgl_kernel_jit::dsv3_fused_a_gemm(latent, hidden_states, mat_b);'
wants warns 'dsv3_router_gemm.*deprecated'
wants computes 'token 1:  2.0  4.0  6.0  8.0 10.0 12.0 14.0 16.0\|relative error'
echo "sample: $passed passed, $failed failed"
[ "$failed" = 0 ]
