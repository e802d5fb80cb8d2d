# sgl-kernel-compat: one makefile for everything.
#
#   make              build the libraries and commands into build/
#   make run          build, then show the main job done on tests/sample
#   make check        build, then run every test suite that can run here (also under sanitizers)
#   make check-torch-matrix  the Python and torch suites on PyPI's torch of each release below, and on Debian's
#   make check-kernel-wheels  the package beside real releases of sglang-kernel, see tests/python/kernel_wheels.py
#   make check-kernel-diffs  sgl-migrate catalog diff on all kernel wheels since 0.3.21, see tests/catalog/kernel_diffs.py
#   make check-routes  the catalog's routes in the releases of sglang and FlashInfer that they name, see tests/catalog/check_routes.py
#   make check-real-trees  fix on releases of sglang, vllm, flashinfer and transformers, see tests/real_trees/real_trees.py
#   make check-real-environment  each line of an audit of torch, sglang, flashinfer and the kernel, see tests/scanner/real_environment.py
#   make check-slurm  job arrays of sgl-migrate on a real Slurm, started and stopped by the test; installs Debian's slurm-wlm
#   make check-long   libFuzzer on every parser of foreign input, a minute each (FUZZ_SECONDS=60); installs Debian's clang-19
#   make bench        the host side of a call, timed: C API, C++ symbol, operator, Python; fails when a must is missed
#   make bench-scan   whole scans of a checkout of real projects against rg and ast-grep; fails when a must is missed
#   make bench-audit  an audit of a site-packages folder of 600 MB and a wheel of 500 MB; fails when a must is missed
#   make gpu-check    the CUDA tests, where a GPU is
#   make gpu-bench    kernel times, where a GPU and torch are; AOT=FILE.so with the old kernels, see tests/gpu/bench.py
#   make plot         docs/kernel-times.svg from the CSV of gpu-bench; CSV=FILE
#   make names        the pages of docs/names from the catalog; after a change of catalog/removals.yaml
#   make docs         the documentation as HTML and man pages, build/docs/html and build/docs/man; installs Debian's pandoc
#   make wheel        the Python package, build/wheel/sgl_kernel_compat-*.whl
#   make install      PREFIX=/usr/local DESTDIR=      libraries, commands, headers, pkg-config and CMake files
#   make deps         install what is missing; all of the above do it themselves
#   make tests        build the test programs without running them
#   make format       clang-format on all C sources; format-check only looks
#   make clean        remove the build folder
#   make help         this list
#
# Objects never lie beside sources: everything goes below $(BUILD). A variant has a folder of its own below it.

BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
SAN ?=
COV ?=
FUZZ ?=
VERSION := 0.1.0
SOVERSION := 0

comma := ,
ifneq ($(SAN),)
B := $(BUILD)/san-$(subst $(comma),-,$(SAN))
else ifneq ($(COV),)
B := $(BUILD)/coverage
else ifneq ($(FUZZ),)
B := $(BUILD)/fuzz
else
B := $(BUILD)
endif

.DEFAULT_GOAL := all
# One short line for each file that is made; V=1 shows the commands.
V ?= 0
Q = $(if $(filter 0,$(V)),@echo '  $(1) $(patsubst $(BUILD)/%,%,$@)';,)
.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:

# --- what is needed ---------------------------------------------------------------------------------------------------

PACKAGES := gcc g++ make cmake pkg-config python3 python3-venv python3-pip libclang-19-dev libclang-common-19-dev \
            libcunit1-dev libcyaml-dev libyaml-dev libhyperscan-dev libelf-dev libarchive-dev libiberty-dev libgit2-dev \
            libjansson-dev libxxhash-dev nettle-dev zlib1g-dev ripgrep zstd
GRAMMAR_VERSION := 0.23.6
GRAMMAR := $(BUILD)/deps/tree_sitter_python-$(GRAMMAR_VERSION)
TREE_SITTER_VERSION := 0.23.2
TREE_SITTER := $(BUILD)/deps/tree-sitter-$(TREE_SITTER_VERSION)/tree_sitter/core/lib
DEPS_STAMP := $(BUILD)/deps/installed

# The stamp holds the package list, so that a changed list is looked at again; a second run costs nothing.
$(DEPS_STAMP): Makefile tests/deps.sh $(wildcard */requirements-*.txt)
	@mkdir -p $(@D)
	@sh tests/deps.sh $(BUILD)/deps $(GRAMMAR_VERSION) $(TREE_SITTER_VERSION) $(PACKAGES)
	@touch $@

$(GRAMMAR)/src/parser.c: $(DEPS_STAMP) ;

# --- flags ------------------------------------------------------------------------------------------------------------

CC ?= gcc
CXX ?= g++
PYTHON ?= python3
OPT := -O2 -g
WARN := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla
CPPFLAGS += -D_GNU_SOURCE -DSGL_VERSION='"$(VERSION)"' -I. -I$(B)/gen -Ijit/include -Ishim/include
CFLAGS_ALL = -std=c11 $(OPT) $(WARN) -fvisibility=hidden -fPIC -fexceptions -fno-strict-aliasing $(VARIANT) $(CFLAGS)
LDFLAGS_ALL = $(VARIANT) $(LDFLAGS)
ifneq ($(SAN),)
SAN_GCC := $(subst asan,address,$(subst ubsan,undefined,$(subst tsan,thread,$(SAN))))
VARIANT := -fsanitize=$(SAN_GCC) -fno-omit-frame-pointer $(if $(findstring undefined,$(SAN_GCC)),-fno-sanitize-recover=undefined)
OPT := -O1 -g
else ifneq ($(COV),)
VARIANT := --coverage
OPT := -O0 -g
else ifneq ($(FUZZ),)
CC = $(LLVM)/bin/clang
VARIANT := -fsanitize=fuzzer-no-link,address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined
OPT := -O1 -g
endif

# The newest libclang; looked up when first needed, after the packages are there.
LLVM = $(shell ls -d /usr/lib/llvm-*/include/clang-c/Index.h | sort -V | tail -n 1 | sed 's,/include/.*,,')
CLANG_CFLAGS = -isystem $(LLVM)/include
LIBCLANG = $(notdir $(realpath $(LLVM)/lib/libclang.so))
CLANG_FILES = -DLIBCLANG_FILE='"$(LLVM)/lib/$(LIBCLANG)"' -DLIBCLANG_SONAME='"$(LIBCLANG)"'
SCANNER_PKGS := libhs libgit2 jansson libcyaml libelf libarchive nettle zlib
SCANNER_CFLAGS = $(CLANG_CFLAGS) -isystem $(TREE_SITTER)/include -isystem $(TREE_SITTER)/src $(shell pkg-config --cflags $(SCANNER_PKGS))
SCANNER_LIBS = $(shell pkg-config --libs $(SCANNER_PKGS)) -liberty -lpthread -ldl
CUNIT_LIBS := -l:libcunit.a

# --- pieces -----------------------------------------------------------------------------------------------------------

objs = $(patsubst %.c,$(B)/obj/%.o,$(1))

CATALOG_TOOL_OBJS := $(call objs,catalog/catalog_tool.c catalog/catalog_gen.c catalog/catalog_docs.c catalog/catalog_docs_changes.c)
CATALOG_OBJS := $(filter-out $(CATALOG_TOOL_OBJS),$(call objs,$(wildcard catalog/*.c)))
JIT_TOOL_OBJS := $(call objs,$(wildcard jit/sgl_jit*.c))
TOOL_OBJS := $(call objs,jit/tool.c)
JIT_OBJS := $(filter-out $(JIT_TOOL_OBJS) $(TOOL_OBJS),$(call objs,$(wildcard jit/*.c)))
SHIM_TOOL_OBJS := $(call objs,$(wildcard shim/sgl_compat*.c))
SHIM_OBJS := $(filter-out $(SHIM_TOOL_OBJS),$(call objs,$(wildcard shim/*.c))) $(B)/obj/shim/tombstone_entry.o \
             $(B)/obj/gen/compat_table.o
SCANNER_OBJS := $(call objs,$(filter-out scanner/main.c scanner/prefilter_gen.c,$(wildcard scanner/*.c))) \
                $(B)/obj/gen/prefilter_builtin.o $(B)/obj/gen/catalog_builtin.o $(B)/obj/gen/cxx_prelude.o \
                $(B)/obj/grammar/parser.o $(B)/obj/grammar/scanner.o $(B)/obj/grammar/runtime.o $(CATALOG_OBJS) \
                $(call objs,jit/cache_folder.c jit/library_search.c jit/status.c shim/policy_text.c shim/policy_sources.c) \
                $(B)/obj/gen/compat_table.o

GENERATED := $(addprefix $(B)/gen/,catalog_builtin.c compat_table.c compat_table.h compat_tombstones.h compat_exports.map cxx_prelude.c compat_catalog.py compat_old.pyi sgl_kernel_compat_old.h)

LIBS := $(B)/lib/libsgl_kernel_jit.so $(B)/lib/libsgl_kernel_compat.so
BINS := $(B)/bin/sgl-migrate $(B)/bin/sgl-jit $(B)/bin/sgl-compat

.PHONY: all deps
all: $(LIBS) $(BINS)
deps: $(DEPS_STAMP)

# Sources are compiled after the dependencies are there, but are not rebuilt because the stamp is newer.
$(B)/obj/%.o: %.c | $(DEPS_STAMP) $(GENERATED)
	@mkdir -p $(@D)
	$(call Q,CC)$(CC) $(CPPFLAGS) $(CFLAGS_ALL) $(EXTRA_$(firstword $(subst /, ,$*))) -MMD -MP -c -o $@ $<

$(B)/obj/%.o: %.S | $(DEPS_STAMP) $(GENERATED)
	@mkdir -p $(@D)
	$(call Q,AS)$(CC) $(CPPFLAGS) -MMD -MP -c -o $@ $<

# The catalog tool writes what the others include, so its own objects must not wait for it.
$(B)/obj/catalog/%.o: catalog/%.c | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(call Q,CC)$(CC) $(CPPFLAGS) $(CFLAGS_ALL) $(shell pkg-config --cflags libcyaml) -MMD -MP -c -o $@ $<

$(B)/obj/gen/%.o: $(B)/gen/%.c
	@mkdir -p $(@D)
	$(call Q,CC)$(CC) $(CPPFLAGS) $(CFLAGS_ALL) $(EXTRA_gen) -MMD -MP -c -o $@ $<

# The grammar and tree-sitter are somebody else's code: no warnings of ours.
$(B)/obj/grammar/%.o: $(GRAMMAR)/src/parser.c
	@mkdir -p $(@D)
	$(call Q,CC)$(CC) -std=c11 -O3 -DNDEBUG -fPIE -w -I$(BUILD)/deps/tree-sitter-headers -c -o $@ $(GRAMMAR)/src/$*.c
$(B)/obj/grammar/runtime.o: $(GRAMMAR)/src/parser.c
	@mkdir -p $(@D)
	$(call Q,CC)$(CC) -std=c11 -D_GNU_SOURCE -O3 -DNDEBUG -fPIE -w -I$(TREE_SITTER)/include -I$(TREE_SITTER)/src -c -o $@ $(TREE_SITTER)/src/lib.c

EXTRA_jit := -DSGL_JIT_BUILDING
EXTRA_shim := -DSGL_COMPAT_BUILDING
EXTRA_scanner = $(SCANNER_CFLAGS) $(CLANG_FILES)
EXTRA_tests = $(SCANNER_CFLAGS)

# --- catalog ----------------------------------------------------------------------------------------------------------

$(B)/bin/sgl-catalog: $(CATALOG_TOOL_OBJS) $(CATALOG_OBJS)
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS_ALL) -o $@ $^ $$(pkg-config --libs libcyaml)

# One run lints and writes all tables; a lint error stops the build.
$(B)/gen/stamp: catalog/removals.yaml catalog/prelude.h.in $(B)/bin/sgl-catalog
	@mkdir -p $(@D)
	$(call Q,GEN)$(B)/bin/sgl-catalog generate catalog/removals.yaml $(B)/gen
	@touch $@
$(GENERATED): $(B)/gen/stamp ;

# The pages of docs/names, which are committed: tests/catalog/test_docs.py compares. Pages of names that are gone go.
.PHONY: names
names: $(B)/bin/sgl-catalog
	@mkdir -p docs/names && rm -f docs/names/*.md
	$(B)/bin/sgl-catalog docs catalog/removals.yaml docs/names

# --- documentation ----------------------------------------------------------------------------------------------------

# All Markdown for users, and the man pages of the commands. docs/names/README.md is sgl_kernel(7), merge_state.md there is
# sgl_kernel.merge_state(7), docs/limits.md is sgl-kernel-compat-limits(7).
DOCS := README.md catalog/schema.md $(wildcard docs/*.md docs/names/*.md)
HTML := $(DOCS:%.md=$(B)/docs/html/%.html) $(patsubst docs/%.1,$(B)/docs/html/docs/%.1.html,$(wildcard docs/*.1)) \
        $(patsubst %,$(B)/docs/html/%,$(wildcard docs/*.svg))
MAN_NAMES := $(filter-out README,$(patsubst docs/names/%.md,%,$(wildcard docs/names/*.md)))
MAN := $(patsubst %,$(B)/docs/man/man7/%.7,sgl-kernel-compat sgl-kernel-compat-catalog sgl_kernel $(MAN_NAMES:%=sgl_kernel.%) \
       $(patsubst docs/%.md,sgl-kernel-compat-%,$(wildcard docs/*.md))) $(patsubst docs/%,$(B)/docs/man/man1/%,$(wildcard docs/*.1))
PANDOC := $(BUILD)/deps/pandoc-installed
$(PANDOC): | $(DEPS_STAMP)
	@sh tests/deps.sh $(BUILD)/deps $(GRAMMAR_VERSION) $(TREE_SITTER_VERSION) pandoc
	@touch $@

.PHONY: docs
docs: $(HTML) $(MAN)
	@rm -f $(filter-out $^,$(shell find $(B)/docs -type f 2>/dev/null))

TO_HTML = @mkdir -p $(@D); pandoc -t html5 -s -V 'header-includes=<style>body { max-width: 80em }</style>' -o $@
$(B)/docs/html/%.html: %.md docs/pages.lua Makefile | $(PANDOC)
	$(TO_HTML) -f gfm --lua-filter=docs/pages.lua $<
$(B)/docs/html/docs/%.1.html: docs/%.1 Makefile | $(PANDOC)
	$(TO_HTML) -f man -M pagetitle=$*\(1\) $<
$(B)/docs/html/%.svg: %.svg
	@mkdir -p $(@D) && cp $< $@

TO_MAN = @mkdir -p $(@D); pandoc -f gfm -t man -s --lua-filter=docs/pages.lua -M title=$(basename $(@F)) -M section=7 -M footer='sgl-kernel-compat $(VERSION)' -o $@
$(B)/docs/man/man7/sgl_kernel.%.7: docs/names/%.md docs/pages.lua Makefile | $(PANDOC)
	$(TO_MAN) $<
$(B)/docs/man/man7/sgl-kernel-compat-%.7: docs/%.md docs/pages.lua Makefile | $(PANDOC)
	$(TO_MAN) $<
$(B)/docs/man/man7/sgl_kernel.7: docs/names/README.md docs/pages.lua Makefile | $(PANDOC)
	$(TO_MAN) $<
$(B)/docs/man/man7/sgl-kernel-compat.7: README.md docs/pages.lua Makefile | $(PANDOC)
	$(TO_MAN) $<
$(B)/docs/man/man7/sgl-kernel-compat-catalog.7: catalog/schema.md docs/pages.lua Makefile | $(PANDOC)
	$(TO_MAN) $<
$(B)/docs/man/man1/%: docs/%
	@mkdir -p $(@D) && cp $< $@

# --- libraries --------------------------------------------------------------------------------------------------------

# The kernels are text, put into the object file byte for byte (jit/kernel_text.c).
$(B)/obj/jit/kernel_text.o: $(wildcard jit/kernels/*)

$(B)/lib/libsgl_kernel_jit.so: $(JIT_OBJS)
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) -shared $(LDFLAGS_ALL) -Wl,-soname,libsgl_kernel_jit.so.$(SOVERSION) $(if $(SAN),,-Wl,-z,defs) -Wl,-z,now,-z,relro,-z,nodelete -o $@ $^ -lpthread -ldl -lm
	@ln -sf libsgl_kernel_jit.so $(@D)/libsgl_kernel_jit.so.$(SOVERSION)

$(B)/lib/libsgl_kernel_compat.so: $(SHIM_OBJS) $(B)/gen/compat_exports.map $(B)/lib/libsgl_kernel_jit.so
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) -shared $(LDFLAGS_ALL) -Wl,-soname,libsgl_kernel_compat.so.$(SOVERSION) $(if $(SAN),,-Wl,-z,defs) -Wl,-z,now,-z,relro,-z,nodelete \
	  -Wl,--version-script=$(B)/gen/compat_exports.map -Wl,-rpath,'$$ORIGIN' -o $@ $(SHIM_OBJS) -L$(B)/lib -lsgl_kernel_jit -lpthread -ldl -lm
	@ln -sf libsgl_kernel_compat.so $(@D)/libsgl_kernel_compat.so.$(SOVERSION)

$(B)/bin/sgl-migrate: $(B)/obj/scanner/main.o $(SCANNER_OBJS)
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(SCANNER_LIBS)

# The name search of the built-in catalog, compiled once here and not at every start.
$(B)/bin/prefilter-gen: $(call objs,scanner/prefilter_gen.c scanner/prefilter_patterns.c scanner/memory.c) $(B)/obj/gen/catalog_builtin.o
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS_ALL) -o $@ $^ $$(pkg-config --libs libhs)
$(B)/gen/prefilter_builtin.c: $(B)/bin/prefilter-gen
	$(call Q,GEN)$(B)/bin/prefilter-gen >$@
$(B)/obj/gen/prefilter_builtin.o: EXTRA_gen = $(shell pkg-config --cflags libhs)

# The command reaches private functions of the library, and is a program: it may need what the library does not.
$(B)/bin/sgl-jit: $(JIT_TOOL_OBJS) $(TOOL_OBJS) $(B)/lib/jit.a
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS_ALL) -o $@ $^ $$(pkg-config --libs jansson libelf) -lpthread -ldl -lm

$(B)/bin/sgl-compat: $(SHIM_TOOL_OBJS) $(TOOL_OBJS) $(B)/lib/shim.a $(B)/lib/jit.a
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS_ALL) -o $@ $^ $$(pkg-config --libs jansson) -lpthread -ldl -lm

# --- Python -----------------------------------------------------------------------------------------------------------

# Laid out anew each time: Python sources, the generated modules, and the libraries without their debug information.
WHEEL := $(B)/wheel/built
PYTHON_SOURCES := $(shell find shim/python -type f ! -name '*.pyc')
.PHONY: wheel
wheel: $(WHEEL)
	@ls $(B)/wheel/*.whl
$(WHEEL): $(PYTHON_SOURCES) LICENSE README.md $(B)/gen/compat_catalog.py $(B)/gen/compat_old.pyi $(LIBS) Makefile
	$(if $(SAN),$(error the wheel takes a build without sanitizers))
	@rm -rf $(B)/wheel && mkdir -p $(B)/wheel/source
	@cp -r shim/python/. LICENSE README.md $(B)/wheel/source
	@cp $(B)/gen/compat_catalog.py $(B)/wheel/source/sgl_kernel_compat/_catalog.py
	@cp $(B)/gen/compat_old.pyi $(B)/wheel/source/sgl_kernel_compat/old.pyi
	@for p in jit compat; do echo '__version__ = "$(VERSION)"' >$(B)/wheel/source/sgl_kernel_$$p/_version.py || exit 1; done
	@mkdir -p $(B)/wheel/source/sgl_kernel_jit/lib
	@for l in jit compat; do strip --strip-unneeded -o $(B)/wheel/source/sgl_kernel_jit/lib/libsgl_kernel_$$l.so.$(SOVERSION) $(B)/lib/libsgl_kernel_$$l.so || exit 1; done
	$(call Q,WHEEL)PYTHONPATH=$(abspath $(BUILD))/deps/sdist-tools $(PYTHON) -m pip --disable-pip-version-check wheel -q --no-index --no-deps \
	  --no-build-isolation --no-cache-dir -w $(B)/wheel $(B)/wheel/source
	@touch $@

# Static archives for the unit tests, which reach private functions.
$(B)/lib/jit.a: $(JIT_OBJS)
$(B)/lib/shim.a: $(SHIM_OBJS)
$(B)/lib/scanner.a: $(SCANNER_OBJS)
$(B)/lib/catalog.a: $(CATALOG_OBJS) $(filter-out %catalog_tool.o,$(CATALOG_TOOL_OBJS)) $(B)/obj/gen/catalog_builtin.o
$(B)/lib/%.a:
	@mkdir -p $(@D)
	@rm -f $@
	$(call Q,AR)ar rcs $@ $^

# --- tests ------------------------------------------------------------------------------------------------------------
# tests/MODULE/test_NAME.c      a CUnit program (tests/unit.h), linked with the module's archive
# tests/bench/bench_NAME.c|py a benchmark, not a test: linked with the libraries, run by `make bench`
# tests/MODULE/fake_NAME.c|cc   a stand-in shared library, built to $(B)/tests/MODULE/fake_NAME.so
# tests/MODULE/test_NAME.py|sh  a script; finds everything through the environment variable BUILD_DIR

UNIT := $(patsubst %.c,$(B)/%,$(wildcard tests/catalog/test_*.c tests/jit/test_*.c tests/shim/test_*.c tests/scanner/test_*.c))
BENCH := $(patsubst %.c,$(B)/%,$(wildcard tests/bench/bench_*.c))
GPU := $(patsubst %.c,$(B)/%,$(wildcard tests/gpu/test_*.c))
FAKES := $(patsubst %,$(B)/%.so,$(basename $(wildcard tests/*/fake_*.c tests/*/fake_*.cc)))

$(B)/tests/catalog/%: $(B)/obj/tests/catalog/%.o $(B)/lib/catalog.a
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(CUNIT_LIBS) $$(pkg-config --libs libcyaml)
$(B)/tests/jit/%: $(B)/obj/tests/jit/%.o $(B)/lib/jit.a
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(CUNIT_LIBS) -lpthread -ldl -lm
$(B)/tests/gpu/%: $(B)/obj/tests/gpu/%.o $(B)/lib/libsgl_kernel_jit.so
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS_ALL) -o $@ $< -L$(B)/lib -lsgl_kernel_jit -Wl,-rpath,'$$ORIGIN/../../lib' $(CUNIT_LIBS) -lpthread -ldl -lm
$(B)/tests/bench/%: $(B)/obj/tests/bench/%.o $(LIBS)
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS_ALL) -o $@ $< -L$(B)/lib -lsgl_kernel_compat -lsgl_kernel_jit -Wl,-rpath,'$$ORIGIN/../../lib' -lpthread -ldl
# This one measures private functions.
$(B)/tests/bench/bench_usage: $(B)/obj/tests/bench/bench_usage.o $(B)/lib/shim.a $(B)/lib/jit.a
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS_ALL) -o $@ $^ -lpthread -ldl -lm
$(B)/tests/shim/%: $(B)/obj/tests/shim/%.o $(B)/lib/shim.a $(B)/lib/jit.a
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS_ALL) -rdynamic -o $@ $^ $(CUNIT_LIBS) $$(pkg-config --libs jansson) -lpthread -ldl -lm -Wl,--no-as-needed -lstdc++
$(B)/tests/scanner/%: $(B)/obj/tests/scanner/%.o $(B)/lib/scanner.a
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(CUNIT_LIBS) $(SCANNER_LIBS)
# The JIT finds its fakes as it finds the real ones, by these names; the fake NVRTC contains the emulated device.
$(B)/tests/jit/fake_cuda.so $(B)/tests/jit/fake_cuda_11.so: LDFLAGS += -Wl,-soname,libcuda.so.1
$(B)/tests/jit/fake_nvrtc.so: LDFLAGS += -Wl,-soname,libnvrtc.so.13
$(B)/tests/jit/fake_cublaslt.so: LDFLAGS += -Wl,-soname,libcublasLt.so.13
$(B)/obj/tests/jit/fake_nvrtc.o: tests/jit/emulated_device.cuh tests/jit/emulated_elements.cuh
$(B)/tests/%.so: $(B)/obj/tests/%.o
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) -shared $(LDFLAGS_ALL) -o $@ $< -lpthread -ldl -lm
$(B)/tests/%.so: tests/%.cc | $(DEPS_STAMP)
	@mkdir -p $(@D) $(B)/obj/$(dir tests/$*)
	$(call Q,LD)$(CXX) -std=c++17 $(OPT) -Wall -Wextra -Werror -fPIC $(VARIANT) -I. -MMD -MP -MF $(B)/obj/tests/$*.d -shared $(LDFLAGS) -o $@ $<

# libFuzzer targets: make FUZZ=1 fuzzers
FUZZERS := $(patsubst %.c,$(B)/%,$(wildcard tests/fuzz/fuzz_*.c))
$(B)/tests/fuzz/%: $(B)/obj/tests/fuzz/%.o $(B)/obj/tests/fuzz/fuzz.o $(B)/lib/scanner.a
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS_ALL) -fsanitize=fuzzer -o $@ -Wl,--start-group $^ -Wl,--end-group $(SCANNER_LIBS) -lm
$(B)/tests/fuzz/fuzz_statistics: $(call objs,shim/sgl_compat_stats.c shim/sgl_compat_stats_check.c) $(TOOL_OBJS)
$(B)/tests/fuzz/fuzz_gate: $(call objs,shim/sgl_compat_sarif.c) $(TOOL_OBJS)
$(B)/tests/fuzz/fuzz_shadow: $(B)/lib/shim.a $(B)/lib/jit.a

.PHONY: fuzzers check-long
fuzzers: $(FUZZERS)
# The seconds are for each of the targets in tests/fuzz.
FUZZ_SECONDS ?= 60
check-long: all
	@sh tests/deps.sh $(BUILD)/deps $(GRAMMAR_VERSION) $(TREE_SITTER_VERSION) clang-19 libclang-rt-19-dev
	$(MAKE) --no-print-directory FUZZ=1 fuzzers
	$(PYTHON) tests/fuzz/run.py $(B) $(FUZZ_SECONDS)

.PHONY: tests check threaded-tests check-torch-matrix check-kernel-wheels check-kernel-diffs check-routes check-real-trees check-real-environment check-slurm run bench bench-scan bench-audit gpu-check gpu-bench plot
tests: all $(UNIT) $(FAKES) $(if $(SAN),,$(WHEEL))
check: tests docs
	$(MAKE) --no-print-directory SAN=asan,ubsan tests
	$(MAKE) --no-print-directory SAN=tsan threaded-tests
	$(PYTHON) tests/check.py --build $(B) --sanitized $(BUILD)/san-asan-ubsan --threads $(BUILD)/san-tsan
# What check.py runs under ThreadSanitizer: THREADED there.
threaded-tests: $(B)/tests/shim/test_call_log $(B)/tests/shim/test_usage $(B)/tests/shim/test_usage_files $(B)/tests/shim/test_warn $(filter $(B)/tests/shim/%,$(FAKES))

# The oldest release that is served, that of the GPU tests, the newest on PyPI: pins are in tests/python/requirements-torch-*.txt.
# Half a minute and 1.2 to 1.7 GB of disk for each; tests/shim/install_torch.sh fetches Debian's. Nothing may be skipped on PyPI's.
TORCH_MATRIX := 2.8.0 2.11.0 2.15.0
TORCH_SUITES := python/test_package shim/test_real_torch
check-torch-matrix: tests
	@set -e; for v in $(TORCH_MATRIX); do $(PYTHON) tests/python/install_torch.py $$v $(B)/torch-$$v; done; \
	sh tests/shim/install_torch.sh $(B)/torch; status=0; \
	for torch in $(TORCH_MATRIX:%=torch-%) torch; do echo "$$torch:"; for suite in $(TORCH_SUITES); do \
	  SGL_TEST_TORCH=$(abspath $(B))/$$torch $(PYTHON) tests/check.py --build $(B) -k $$suite $$([ $$torch = torch ] || echo --no-skips) || status=1; done; done; exit $$status

check-kernel-wheels: $(WHEEL)
	$(PYTHON) tests/python/kernel_wheels.py $(B)

# Ten minutes; 6.1 GB from PyPI, 1.2 GB of disk. WHEELS=FOLDER has some already.
check-kernel-diffs: $(B)/bin/sgl-migrate
	$(PYTHON) tests/catalog/kernel_diffs.py $(B) $(WHEELS)

# A minute; 450 MB from PyPI. ROUTES=FOLDER has the packages already.
check-routes: $(DEPS_STAMP)
	$(PYTHON) tests/catalog/check_routes.py $(B) $(ROUTES)

# Five minutes; 300 MB from PyPI, 1.6 GB of disk.
check-real-trees: $(B)/bin/sgl-migrate
	$(PYTHON) tests/real_trees/real_trees.py $(B)

# Six minutes; some 4 GB from PyPI, 9 GB of disk. SITE=FOLDER has the environment already.
check-real-environment: $(B)/bin/sgl-migrate
	$(PYTHON) tests/scanner/real_environment.py $(B) $(SITE)

# Half a minute; not in `check`, which would install a job scheduler and its users on every machine.
check-slurm: all
	@sh tests/deps.sh $(BUILD)/deps $(GRAMMAR_VERSION) $(TREE_SITTER_VERSION) slurm-wlm munge parallel
	$(PYTHON) tests/scanner/slurm.py $(B)

run: all
	sh tests/sample/run.sh $(B)

# The NVRTC is the machine's, else the one that `deps` has fetched.
bench: $(LIBS) $(BENCH) $(FAKES)
	@nvrtc=$$(ls $(abspath $(BUILD))/deps/nvrtc/nvidia/*/lib/libnvrtc.so.1[23] 2>/dev/null | head -n 1); \
	[ -z "$$nvrtc" ] || export SGL_KERNEL_JIT_NVRTC="$${SGL_KERNEL_JIT_NVRTC:-$$nvrtc}"; \
	status=0; for program in $(BENCH); do $$program || status=1; done; \
	$(PYTHON) tests/bench/bench_python.py $(B) || status=1; exit $$status

bench-scan: $(B)/bin/sgl-migrate
	$(PYTHON) tests/bench/bench_scan.py $(B)

# Two minutes, 2 GB of disk.
bench-audit: $(B)/bin/sgl-migrate
	$(PYTHON) tests/bench/bench_audit.py $(B)

gpu-check: $(LIBS) $(GPU)
	$(PYTHON) tests/check.py --build $(B) --gpu -v

gpu-bench: $(LIBS)
	$(PYTHON) tests/gpu/bench.py --library $(B)/lib/libsgl_kernel_jit.so --csv $(B)/gpu-bench.csv $(if $(AOT),--aot $(AOT))

CSV ?= $(B)/gpu-bench.csv
plot:
	$(PYTHON) tests/gpu/plot.py $(CSV) docs/kernel-times.svg

# --- install, clean, format -------------------------------------------------------------------------------------------

.PHONY: install clean format format-check help
PACKAGE_FILE = sed -e 's|@VERSION@|$(VERSION)|g' -e 's|@SOVERSION@|$(SOVERSION)|g' -e 's|@PREFIX@|$(PREFIX)|g'
install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/pkgconfig $(DESTDIR)$(PREFIX)/include/sgl_kernel_jit $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 755 $(BINS) $(DESTDIR)$(PREFIX)/bin
	for l in jit compat; do \
	  install -m 755 $(B)/lib/libsgl_kernel_$$l.so $(DESTDIR)$(PREFIX)/lib/libsgl_kernel_$$l.so.$(SOVERSION) && \
	  ln -sf libsgl_kernel_$$l.so.$(SOVERSION) $(DESTDIR)$(PREFIX)/lib/libsgl_kernel_$$l.so || exit 1; done
	install -m 644 jit/include/sgl_kernel_jit/*.h $(DESTDIR)$(PREFIX)/include/sgl_kernel_jit
	install -m 644 shim/include/*.h $(B)/gen/sgl_kernel_compat_old.h $(DESTDIR)$(PREFIX)/include
	install -m 644 $(wildcard docs/*.1) $(DESTDIR)$(PREFIX)/share/man/man1
	for p in jit/package/sgl_kernel_jit shim/package/sgl_kernel_compat; do \
	  name=$${p##*/} && cmake=$(DESTDIR)$(PREFIX)/lib/cmake/$$name && install -d $$cmake && \
	  $(PACKAGE_FILE) $$p.pc.in >$(DESTDIR)$(PREFIX)/lib/pkgconfig/$$name.pc && \
	  $(PACKAGE_FILE) $$p-config.cmake.in >$$cmake/$$name-config.cmake && \
	  $(PACKAGE_FILE) jit/package/config-version.cmake.in >$$cmake/$$name-config-version.cmake || exit 1; done

clean:
	rm -rf $(BUILD)

FORMATTED = $(shell git ls-files '*.c' '*.h' ':!tests/cases' ':!tests/sample')
format:
	clang-format -i $(FORMATTED)
format-check:
	clang-format --dry-run -Werror $(FORMATTED)

help:
	@sed -n '2,/^$$/s/^# \{0,1\}//p' Makefile
	@echo 'variables: BUILD=build  SAN=asan,ubsan|tsan  COV=1  V=1  PREFIX=/usr/local  DESTDIR=  CC  CFLAGS  LDFLAGS'

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
