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
check soname sh -c "readelf -d $prefix/lib/libsgl_kernel_compat.so | grep -q 'SONAME.*libsgl_kernel_compat.so.0'"
check found_beside_it sh -c "env -u LD_LIBRARY_PATH ldd $prefix/lib/libsgl_kernel_compat.so | grep 'libsgl_kernel_jit.so.0 => $prefix/lib'"
check scanner_runs "$prefix/bin/sgl-migrate" --version
check jit_command_runs "$prefix/bin/sgl-jit" --version
check jit_command_finds_the_library sh -c "env -u LD_LIBRARY_PATH $prefix/bin/sgl-jit info | grep -q '^library .*$prefix/lib/libsgl_kernel_jit.so.0'"
check man_page sh -c "test -s $prefix/share/man/man1/sgl-migrate.1 && test -s $prefix/share/man/man1/sgl-jit.1"
check cxx_header test -s "$prefix/include/sgl_kernel_jit/torch.h"
echo "install: $passed passed, $failed failed"
[ "$failed" = 0 ]
