#!/bin/sh
# make install into a folder of its own, then use what is there as a stranger would: pkg-config, compile, run, man.
set -u
root=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
build=${BUILD_DIR:?set by check.py}
dest=$(mktemp -d)
trap 'rm -rf "$dest"' EXIT
passed=0 failed=0
check() { # check NAME COMMAND...
  name=$1
  shift
  if "$@" >"$dest/log" 2>&1; then passed=$((passed + 1)); else
    failed=$((failed + 1))
    echo "FAIL install.$name"
    sed 's/^/     /' "$dest/log"
  fi
}
cd "$root"
check install make --no-print-directory BUILD="$build" install DESTDIR="$dest" PREFIX=/opt/sgl
prefix=$dest/opt/sgl
export PKG_CONFIG_PATH="$prefix/lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$dest"
check pkg_config_version sh -c '[ "$(pkg-config --modversion sgl_kernel_compat)" = "$(pkg-config --modversion sgl_kernel_jit)" ]'
check compile_c sh -c "\${CC:-gcc} -std=c11 -Wall -Werror -o $dest/c_api tests/sample/c_api.c \$(pkg-config --cflags --libs sgl_kernel_jit)"
check run_c env LD_LIBRARY_PATH="$prefix/lib" "$dest/c_api"
check link_old_symbol sh -c "\${CXX:-g++} -shared -fPIC -Wl,-z,defs -o $dest/liblegacy_caller.so tests/sample/project/csrc/legacy_caller.cc \$(pkg-config --libs sgl_kernel_compat)"
stand_in=$root/tests/jit/torch
# The old program: compiled with warnings that tell the replacement, and one line on stderr for each name and call site
# that tells the program and the function.
old_compiles_and_runs() { # FOLDER, with the programs and the compiler's output in it
  [ "$(grep -c "is deprecated.*use sgl_kernel_jit::" "$1/log")" = 2 ] || { cat "$1/log"; return 1; }
  grep -q "dsv3_router_gemm.*sgl_kernel has dropped it in 0.4.5 (#21531)" "$1/log" || { cat "$1/log"; return 1; }
  env -u LD_LIBRARY_PATH -u SGL_KERNEL_COMPAT_WARN LD_LIBRARY_PATH="$2" "$1/old" >"$1/out" 2>"$1/err" || { cat "$1/out" "$1/err"; return 1; }
  [ "$(wc -l <"$1/err")" = 2 ] && [ "$(grep -c "dsv3_router_gemm is deprecated.*called from old+0x[0-9a-f]* (run_model+0x" "$1/err")" = 1 ] ||
    { cat "$1/err"; return 1; }
}
by_cmake() { # COMPILER
  mkdir -p "$dest/cmake-$1" && cmake -S tests/consumer -B "$dest/cmake-$1" -DCMAKE_CXX_COMPILER="$1" -DCMAKE_PREFIX_PATH="$prefix" \
    -DTORCH_STAND_IN="$stand_in" && cmake --build "$dest/cmake-$1" >"$dest/cmake-$1/log" 2>&1 || { cat "$dest/cmake-$1/log"; return 1; }
  old_compiles_and_runs "$dest/cmake-$1" "" && env -u LD_LIBRARY_PATH "$dest/cmake-$1/new"
}
by_pkg_config() {
  mkdir -p "$dest/pkg-config" && make --no-print-directory -C tests/consumer OUT="$dest/pkg-config" TORCH_STAND_IN="$stand_in" >"$dest/pkg-config/log" 2>&1 ||
    { cat "$dest/pkg-config/log"; return 1; }
  old_compiles_and_runs "$dest/pkg-config" "$prefix/lib" && LD_LIBRARY_PATH="$prefix/lib" "$dest/pkg-config/new"
}
cmake_finds() { # VERSION
  rm -rf "$dest/found" && mkdir -p "$dest/found" && printf 'cmake_minimum_required(VERSION 3.16...3.25)\nproject(p CXX)\nfind_package(sgl_kernel_compat %s REQUIRED)\n' "$1" >"$dest/found/CMakeLists.txt"
  cmake -S "$dest/found" -B "$dest/found/build" -DCMAKE_PREFIX_PATH="$prefix"
}
cmake_refuses() { # VERSION
  ! cmake_finds "$1"
}
check consumer_by_cmake by_cmake "${CXX:-g++}"
! command -v clang++ >/dev/null || check consumer_by_cmake_and_clang by_cmake clang++
check consumer_by_pkg_config by_pkg_config
check cmake_refuses_a_newer_version cmake_refuses 0.2
check cmake_refuses_a_newer_patch cmake_refuses 0.1.9
check cmake_refuses_an_older_minor_version cmake_refuses 0.0.1
check cmake_refuses_another_major_version cmake_refuses 1
for version in 0 0.1 0.1.0 0.0.5...0.3 '0.1...<1'; do check "cmake_finds_$version" cmake_finds "$version"; done
for version in '0...<0.1' 0.2...1; do check "cmake_refuses_$version" cmake_refuses "$version"; done
check soname sh -c "readelf -d $prefix/lib/libsgl_kernel_compat.so | grep -q 'SONAME.*libsgl_kernel_compat.so.0'"
check found_beside_it sh -c "env -u LD_LIBRARY_PATH ldd $prefix/lib/libsgl_kernel_compat.so | grep 'libsgl_kernel_jit.so.0 => $prefix/lib'"
check scanner_runs "$prefix/bin/sgl-migrate" --version
check jit_command_runs "$prefix/bin/sgl-jit" --version
check jit_command_finds_the_library sh -c "env -u LD_LIBRARY_PATH $prefix/bin/sgl-jit info | grep -q '^library .*$prefix/lib/libsgl_kernel_jit.so.0'"
check compat_command_runs "$prefix/bin/sgl-compat" --version
check man_pages sh -c "for c in sgl-migrate sgl-jit sgl-compat; do test -s $prefix/share/man/man1/\$c.1 || exit 1; done"
check cxx_header test -s "$prefix/include/sgl_kernel_jit/torch.h"
echo "install: $passed passed, $failed failed"
[ "$failed" = 0 ]
