# SPDX-License-Identifier: MIT
# `make help` lists the targets. New .c files are picked up by the wildcards; a file name
# that ends in _avx2, _avx512, _avx512_bf16, _amx_bf16 or _neon names the instructions of that file, NAME.isa.c is compiled for
# each level with whole kernels (ISAS), products of int8 also for what multiplies four of them (DOT4), of bf16 for what multiplies pairs (PAIRS); no other file
# uses such instructions.
#
# Settings, on the command line or in config.mk: CC (gcc, clang), MODE (release, sanitize, thread,
# fuzz),
# SLOW=PCT (build/slow/bench, whose timed region takes PCT % longer: the gate's own test),
# MPI=1 (build/release-mpi: a training over several processes), CFLAGS, LDFLAGS, WERROR=1, V=1
# (show commands), INCDIRS, OPENBLAS_INC, OPENBLAS_LIB, PREFIX, DESTDIR, HARDEN (empty: without
# hardening), SYSROOT (with CC: for the machine whose files lie there; see scripts/arm64.sh).
-include config.mk

ifeq ($(origin CC),default)
CC := gcc
endif
MODE ?= release
comma := ,
PREFIX ?= /usr/local
COMPILER := $(if $(findstring clang,$(notdir $(CC))),-clang)
# What is written for another architecture is left out.
ARCH := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))
ifeq ($(ARCH),aarch64)
ISAS := neon
DOT4 := neon_dot
SKIP := %_x86.c %_avx2.c %_avx512.c %_bf16.c %_bf16.isa.c
else
ISAS := avx2 avx512
DOT4 := avx_vnni avx512_vnni amx_int8
PAIRS := avx512_bf16 amx_bf16
SKIP := %_arm64.c %_neon.c
endif
BUILD := build/$(if $(SLOW),slow,$(MODE)$(COMPILER))$(SYSROOT:%=-$(ARCH))
# Programs of a build with MPI: one of their objects differs, which has a name of its own.
BIN := $(BUILD)$(if $(MPI),-mpi)
# clang 19 does not say it.
MULTIARCH := $(or $(shell $(CC) -print-multiarch 2>/dev/null),$(ARCH)-linux-gnu)
MAKEFLAGS += --no-print-directory
ifeq ($(MAKELEVEL),0)
# nproc follows OMP_NUM_THREADS, which is not about compilers. A -j of the environment stays, which make
# itself takes for less than ours.
ifeq ($(filter -j%,$(shell printenv MAKEFLAGS)),)
MAKEFLAGS += -j$(shell env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)
endif
endif

CFLAGS_release := -O2 -g
# -g1: functions and lines, which reports name; full debug information costs a quarter of a compilation.
CFLAGS_sanitize := -O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined \
    -fno-sanitize-recover=undefined
# With clang, whose OpenMP runtime tells ThreadSanitizer what its threads wait for.
CFLAGS_thread := -O1 -g1 -fno-omit-frame-pointer -fsanitize=thread
# Loops that are instrumented are not vectorised.
CFLAGS_fuzz := $(CFLAGS_sanitize) -fsanitize=fuzzer-no-link -Wno-pass-failed
# The kernels as they are: instrumented, clang takes minutes for each; the sanitizers' own build has
# them.
KERNEL_fuzz := -fno-sanitize=all -fno-sanitize=fuzzer-no-link
ifeq ($(CFLAGS_$(MODE)),)
$(error MODE is $(MODE)  -> release, sanitize, thread or fuzz)
endif

# Libraries. Headers are searched in INCDIRS; without an optional one its feature is left out.
INCDIRS ?= $(addprefix $(SYSROOT),/usr/include /usr/include/$(MULTIARCH) /usr/local/include)
OPENBLAS_INC ?= /usr/include/$(MULTIARCH)/openblas-openmp
OPENBLAS_LIB ?= /usr/lib/$(MULTIARCH)/openblas-openmp
found = $(firstword $(wildcard $(INCDIRS:%=%/$1)))
REQUIRED := hwloc.h csv.h jansson.h xxhash.h pcre2.h utf8proc.h Random123/philox.h
MISSING := $(strip $(foreach h,$(REQUIRED),$(if $(call found,$h),,$h)))
HAVE_OPENBLAS := $(if $(wildcard $(SYSROOT)$(OPENBLAS_INC)/cblas.h),1,0)
# Debian 12 has version 2, Debian 13 version 3.
ONEDNN_MAJOR := $(lastword $(shell grep -hs 'define DNNL_VERSION_MAJOR' \
    $(call found,oneapi/dnnl/dnnl_version.h) /dev/null))
HAVE_ONEDNN := $(if $(filter 2 3,$(ONEDNN_MAJOR)),1,0)
HAVE_ZSTD := $(if $(call found,zstd.h),1,0)
# These libraries bring GNU's OpenMP runtime along, of which ThreadSanitizer knows nothing.
ifeq ($(MODE),thread)
HAVE_OPENBLAS := 0
HAVE_ONEDNN := 0
endif
LIBS := -lhwloc -lcsv -ljansson -lxxhash -lpcre2-8 -lutf8proc
ifeq ($(HAVE_OPENBLAS),1)
# The OpenMP build, by its own directory at run time too: the loader's default may be the pthread one.
LIBS += -L$(SYSROOT)$(OPENBLAS_LIB) -Wl,-rpath,$(OPENBLAS_LIB) -lopenblas
$(BUILD)/variants/backends/openblas.o $(BUILD)/variants/backends/openblas.tidy: private INCLUDE := -isystem $(SYSROOT)$(OPENBLAS_INC)
else
SKIP += variants/backends/openblas%
LEFT_OUT += openblas:libopenblas-openmp-dev
endif
ifeq ($(HAVE_ONEDNN),1)
LIBS += -ldnnl
else
SKIP += variants/backends/onednn/%
LEFT_OUT += onednn:libdnnl-dev_2.x_or_3.x$(ONEDNN_MAJOR:%=,_not_%)
endif
ifeq ($(HAVE_ZSTD),1)
LIBS += -lzstd
else
LEFT_OUT += zstd:libzstd-dev
endif
# Chosen, never found: the default build has no trace of MPI.
ifeq ($(MPI),)
SKIP += harness/util/ranks_mpi.c
else
SKIP += harness/util/ranks_none.c
MPI_CFLAGS ?= $(shell pkg-config --cflags mpi-c 2>/dev/null || mpicc --showme:compile 2>/dev/null)
MPI_LIBS ?= $(shell pkg-config --libs mpi-c 2>/dev/null || mpicc --showme:link 2>/dev/null)
ifeq ($(strip $(MPI_LIBS)),)
$(error MPI=1, but neither pkg-config mpi-c nor mpicc knows an MPI  -> install libopenmpi-dev)
endif
LIBS += $(MPI_LIBS)
$(BUILD)/harness/util/ranks_mpi.o $(BUILD)/harness/util/ranks_mpi.tidy: private INCLUDE := $(MPI_CFLAGS:-I%=-isystem %)
endif
LIBS += -lm

# The project's flags are FLAGS; a user's CFLAGS replaces only the optimisation level. Functions start
# on cache lines: otherwise a change in one file shifts the loops of all others, which changes their
# speed (scalar loops by up to 16 %).
CFLAGS ?= $(CFLAGS_$(MODE))
# Against what a hostile file might do; HARDEN= builds without. Fortified functions need optimisation.
# The sanitizers check more; at fixed addresses their programs, which tests start thousands of times, start
# in two thirds of the time.
ifeq ($(MODE),sanitize)
HARDEN := -fno-pie
HARDEN_LD := -no-pie
else
FORTIFY := $(if $(filter release,$(MODE)),$(if $(filter-out -O0,$(filter -O%,$(CFLAGS))),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))
HARDEN := -fstack-protector-strong -fstack-clash-protection $(if $(filter x86_64,$(ARCH)),-fcf-protection) -fPIE $(FORTIFY)
HARDEN_LD := $(if $(HARDEN),-pie -Wl$(comma)-z$(comma)relro$(comma)-z$(comma)now)
endif
# The same bytes in any folder.
ANYWHERE := -ffile-prefix-map=$(CURDIR)=.
# Functions behind a table share one signature, and not all read every argument.
WARN := -Wall -Wextra -Wno-unused-parameter -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
# Threads of other programs, on which the library runs, may have stacks of 128 KiB. Only of the release build as
# it is: sanitizers and fuzzers put guards around every array, and -O0 gives each temporary a place of its own.
ifeq ($(MODE)$(origin CFLAGS),releasefile)
FRAMES := -Wframe-larger-than=32768 -Werror=frame-larger-than$(if $(COMPILER),,=32768)
endif
FLAGS := $(SYSROOT:%=--sysroot=%) -std=c11 -D_GNU_SOURCE -I. $(CFLAGS) -ffp-contract=off -fno-math-errno \
    -falign-functions=64 -fopenmp $(HARDEN) $(WARN) \
    $(if $(WERROR),-Werror) -DHAVE_OPENBLAS=$(HAVE_OPENBLAS) -DHAVE_ONEDNN=$(HAVE_ONEDNN) \
    -DHAVE_ZSTD=$(HAVE_ZSTD)
SLOWED := $(if $(SLOW),-DSLOW_PCT=$(SLOW))

sources = $(sort $(filter-out %.inc.c,$(shell find $1 -name '*.c')))
SRC := $(filter-out $(SKIP),$(call sources,variants harness))
OBJ := $(patsubst %.c,$(BUILD)/%.o,$(filter-out %.isa.c,$(SRC))) \
    $(foreach i,$(ISAS),$(patsubst %.isa.c,$(BUILD)/%.$i.o,$(filter-out %_bf16.isa.c,$(filter %.isa.c,$(SRC))))) \
    $(DOT4:%=$(BUILD)/variants/backends/simd/gemm_int8.%.o) $(PAIRS:%=$(BUILD)/variants/backends/simd/gemm_bf16.%.o)
PRELOAD := $(patsubst tests/preload/%.c,$(BIN)/%.so,$(call sources,tests/preload))
FUZZ := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
# WITHOUT: folders of tests that are not compiled.
TEST_SRC := $(filter-out $(SKIP) tests/fuzz/% tests/preload/% $(WITHOUT:%=tests/%/%) tests/thread/%, \
    $(call sources,tests))
# For ThreadSanitizer what runs threads is compiled: kernels of each kind, the trainer, a worker and its
# threads, locks.
THREADED := split engine rows grad_rows recur rnn_cells params optimizer rng train job worker pin lock
ifeq ($(MODE),thread)
TEST_SRC := $(filter tests/support/% $(foreach t,$(THREADED),%/test_$t.c),$(filter-out tests/backends/library/%,$(TEST_SRC))) tests/thread/runner.c
endif
# The program and the library have the same objects of kernels; those of the library's interface are its own.
KERNELS := $(addprefix $(BUILD)/variants/,base/% backends/%)
INTERFACE := $(filter $(BUILD)/variants/backends/library/%,$(OBJ))
LIBRARY := $(BIN)/libbenchattn.so.1
# Readers of golden files that users do not have, and the table that names them beside the program's own.
READERS := $(patsubst %.c,$(BUILD)/%.o,$(filter tests/golden_reader/%,$(TEST_SRC)))
SOME_READERS := $(if $(READERS),%/golden_kinds.o)
TEST_OBJ := $(TEST_SRC:%.c=$(BUILD)/%.o) $(filter-out %/main.o %/library/ends.o $(SOME_READERS),$(OBJ))

all: $(BIN)/bench ## build $(BIN)/bench and leave ./bench at the top (default)
	@$(if $(SLOW),echo 'built $<: $(SLOW) % slower',ln -sfn $< bench)
	@$(foreach l,$(LEFT_OUT),echo 'left out: $(subst _, ,$(subst :,  -> install ,$l))';)

show = $(if $(V),,@echo '  $1';)
# "[12/543] ": which of the objects that are made now it is, whatever they are made anew for. A make that only looks
# (COUNTING) lists them when the first one begins: flags are settled by then.
to_make = $(shell $(MAKE) -n COUNTING=1 $(MAKEOVERRIDES) all $(filter tests,$(MAKECMDGOALS)) 2>/dev/null | sed -n 's/.* -MMD -MP -c -o \([^ ]*\) .*/\1/p')
started = $(words $(STARTED))
count = $(if $(COUNTING),,$(if $(STARTED),,$(eval TO_MAKE := $(to_make)))$(eval STARTED += x)[$(started)/$(if $(word $(started),$(TO_MAKE)),$(words $(TO_MAKE)),$(started))] )

tests: $(BIN)/bench $(BIN)/run_tests $(if $(READERS),$(BIN)/golden) $(PRELOAD) $(if $(filter release,$(MODE)),$(LIBRARY))
objects: $(OBJ)
library: $(LIBRARY) ## libbenchattn.so.1, the kernels for other programs: docs/library.md

$(BIN)/bench: $(filter-out $(INTERFACE),$(OBJ))
# bench, whose `check --golden` reads every kind.
$(BIN)/golden: $(filter-out $(INTERFACE) $(SOME_READERS),$(OBJ)) $(READERS)
$(BIN)/bench $(BIN)/golden:
	@mkdir -p $(@D)
	$(call show,ld $@)$(CC) $(FLAGS) $(HARDEN_LD) $(LDFLAGS) -o $@ $^ $(LIBS)

$(BIN)/run_tests: $(TEST_OBJ)
	@mkdir -p $(@D)
	$(call show,ld $@)$(CC) $(FLAGS) $(HARDEN_LD) $(LDFLAGS) -o $@ $^ $(LIBS) $(if $(filter thread,$(MODE)),,-lcriterion)

# Of an archive only what is needed is linked: no other library's backend.
$(BIN)/kernels.a: $(filter-out $(INTERFACE),$(filter $(KERNELS),$(OBJ)))
	@rm -f $@
	$(call show,ar $@)$(AR) rcs $@ $^
$(LIBRARY): $(INTERFACE) $(BIN)/kernels.a variants/backends/library/benchattn.map
	$(call show,ld $@)$(CC) -shared $(FLAGS) $(LDFLAGS) -Wl,-soname,$(@F),--version-script,$(lastword $^),-z,relro,-z,now $(if $(filter release,$(MODE)),-Wl$(comma)-z$(comma)defs) -o $@ $(INTERFACE) $(BIN)/kernels.a -lm

# Libraries that tests load before the program's own; fortified headers would define what they replace.
$(BIN)/%.so: tests/preload/%.c Makefile
	@mkdir -p $(@D)
	$(call show,ld $@)$(CC) -std=c11 -D_GNU_SOURCE -U_FORTIFY_SOURCE -O1 -g $(WARN) -fPIC -shared -o $@ $< -ldl

$(BUILD)/fuzz_%: $(BUILD)/tests/fuzz/fuzz_%.o $(BUILD)/tests/fuzz/structure.o $(filter-out %/main.o $(INTERFACE),$(OBJ))
	$(call show,ld $@)$(CC) $(FLAGS) $(LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(LIBS)
# The library's own end stands in for the program's.
$(BUILD)/fuzz_library_%: $(BUILD)/tests/fuzz/fuzz_library_%.o $(INTERFACE) $(BIN)/kernels.a
	$(call show,ld $@)$(CC) $(FLAGS) $(LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(LIBS)

$(BUILD)/%_avx2.o $(BUILD)/%.avx2.o $(BUILD)/%_avx2.tidy $(BUILD)/%.avx2.tidy: private ISA := -DISA=avx2 -DVEC_AVX2 -mavx2 -mfma $(KERNEL_$(MODE))
$(BUILD)/%_avx512.o $(BUILD)/%.avx512.o $(BUILD)/%_avx512.tidy $(BUILD)/%.avx512.tidy: private ISA := -DISA=avx512 -DVEC_AVX512 -mavx512f -mavx512vl -mavx512bw -mavx512dq -mfma $(KERNEL_$(MODE))
$(BUILD)/%_neon.o $(BUILD)/%.neon.o $(BUILD)/%_neon.tidy $(BUILD)/%.neon.tidy: private ISA := -DISA=neon -DVEC_NEON $(KERNEL_$(MODE))
$(BUILD)/%_avx512_bf16.o $(BUILD)/%.avx512_bf16.o $(BUILD)/%_avx512_bf16.tidy $(BUILD)/%.avx512_bf16.tidy: private ISA := -DISA=avx512_bf16 -mavx512bf16 -mavx512f -mavx512vl -mavx512bw -mavx512dq -mfma $(KERNEL_$(MODE))
$(BUILD)/%_amx_bf16.o $(BUILD)/%.amx_bf16.o $(BUILD)/%_amx_bf16.tidy $(BUILD)/%.amx_bf16.tidy: private ISA := -DISA=amx_bf16 -DVEC_AMX_BF16 -mamx-tile -mamx-bf16 -mavx512bf16 -mavx512f -mavx512vl -mavx512bw -mavx512dq -mfma $(KERNEL_$(MODE))
$(BUILD)/%.avx_vnni.o $(BUILD)/%.avx_vnni.tidy: private ISA := -DISA=avx_vnni -DVEC_AVX2 -DVEC_DOT4 -mavxvnni -mavx2 -mfma $(KERNEL_$(MODE))
$(BUILD)/%.avx512_vnni.o $(BUILD)/%.avx512_vnni.tidy: private ISA := -DISA=avx512_vnni -DVEC_AVX512 -DVEC_DOT4 -mavx512vnni -mavx512f -mavx512vl -mavx512bw -mavx512dq -mfma $(KERNEL_$(MODE))
$(BUILD)/%.amx_int8.o $(BUILD)/%.amx_int8.tidy: private ISA := -DISA=amx_int8 -DVEC_AVX512 -DVEC_DOT4 -DVEC_AMX_INT8 -mamx-tile -mamx-int8 -mavx512vnni -mavx512f -mavx512vl -mavx512bw -mavx512dq -mfma $(KERNEL_$(MODE))
$(BUILD)/%.neon_dot.o $(BUILD)/%.neon_dot.tidy: private ISA := -DISA=neon_dot -DVEC_NEON -DVEC_DOT4 -march=armv8.2-a+dotprod $(KERNEL_$(MODE))
$(KERNELS): private SHARED := -fPIC -fvisibility=hidden
$(BUILD)/harness/cli/build.o $(BUILD)/harness/cli/build.tidy: private INCLUDE := -I$(BUILD)
$(BUILD)/harness/cli/build.o: $(BUILD)/build_info.h
$(BUILD)/harness/worker/worker.o: private ISA := $(SLOWED)
# Warnings of Criterion's macros. Less optimisation saves time, unless the user chose CFLAGS: some for tests that
# compute. Tests have a process's stack.
$(BUILD)/tests/%.o: private FRAMES :=
$(BUILD)/tests/%.o: private ISA := -Wno-pedantic -Wno-missing-prototypes $(if $(findstring file,$(origin CFLAGS)),-O0 -g1 -U_FORTIFY_SOURCE)
$(foreach d,support backends parts model,$(BUILD)/tests/$d/%.o): private ISA := -Wno-pedantic -Wno-missing-prototypes $(if $(findstring file,$(origin CFLAGS)),-O1 -g1)

define ISA_OBJECTS
$(BUILD)/%.$1.o: %.isa.c Makefile $(BUILD)/flags | $(if $(MISSING),missing)
	@mkdir -p $$(@D)
	$$(call show,$$(count)cc $$< ($1))$$(compile)
$(BUILD)/%.$1.tidy: %.isa.c $(BUILD)/%.$1.o .clang-tidy
	$$(call show,tidy $$< ($1))$$(tidying)
	@touch $$@
endef
compile = $(CC) $(FLAGS) $(FRAMES) $(SHARED) $(ANYWHERE) $(ISA) $(INCLUDE) -MMD -MP -c -o $@ $<
$(foreach i,$(ISAS) $(DOT4) $(PAIRS),$(eval $(call ISA_OBJECTS,$i)))
$(BUILD)/%.o: %.c Makefile $(BUILD)/flags | $(if $(MISSING),missing)
	@mkdir -p $(@D)
	$(call show,$(count)cc $<)$(compile)

# The analyzer gives a function up after so many states; with its default, 225000, lint takes several times
# as long.
TIDY_DEPTH := $(addprefix --extra-arg=,-Xclang -analyzer-config -Xclang max-nodes=25000)
tidying = clang-tidy --quiet $(TIDY_DEPTH) $< -- $(FLAGS) $(ISA) $(INCLUDE)
# The object stands for the headers: tidy runs again whenever the object was rebuilt.
$(BUILD)/%.tidy: %.c $(BUILD)/%.o .clang-tidy
	$(call show,tidy $<)$(tidying)
	@touch $@

-include $(patsubst %.o,%.d,$(OBJ) $(TEST_OBJ)) $(wildcard $(BUILD)/tests/fuzz/*.d)

# Rewritten only when their text changes, so that objects are rebuilt only then. Another make may do
# the same at the same time.
keep = mkdir -p $(@D); new=$@.$$$$; cat >$$new; if cmp -s $$new $@; then rm $$new; else mv $$new $@; fi
$(BUILD)/flags: $(if $(COUNTING),,FORCE)
	@printf '%s\n' '$(CC) $(FLAGS) $(SLOWED)' | { $(keep); }
$(BUILD)/build_info.h: $(if $(COUNTING),,FORCE)
	@scripts/build_info.sh '$(CC)' '$(FLAGS)' | { $(keep); }
FORCE:

missing:
	@echo "bench: headers missing: $(MISSING)  -> make deps" >&2; exit 2

deps: ## install what is missing (Debian packages; silent when complete)
	@scripts/deps.sh
hooks: ## run format and lint before each commit, check its subject
	git config core.hooksPath .githooks

# make starts again after deps, so that the header probes above see the new packages.
demo: deps ## build, then a quick look: the classic four
	@$(MAKE) all
	./bench --quick --format table
figures: deps ## draw the figures of the pages again, from the rows beside them (gnuplot)
	@$(MAKE) all
	scripts/figures.py
test: deps ## every suite, or those of FILTER='SUITE/*'; the last line counts
	@$(MAKE) tests
	@scripts/test.sh $(BIN) $(FILTER:%=--filter '%')
sanitize: deps ## the suites under AddressSanitizer and UBSan
	@$(MAKE) MODE=sanitize test
thread: ## the suites that run threads, under ThreadSanitizer (clang)
	@scripts/deps.sh clang
	@$(MAKE) CC=clang MODE=thread tests
	@scripts/test.sh build/thread-clang $(FILTER:%=--filter '%')
test-browser: deps ## the report in headless Chromium
	@scripts/deps.sh browser
	@$(MAKE) all
	@mkdir -p $(BUILD)/browser
	@tests/browser/report.py $(BIN)/bench $(BUILD)/browser
site: ## these pages as a site in build/site, which needs no network (pandoc)
	@scripts/deps.sh site
	@scripts/site/make.py
test-site: site ## the site in headless Chromium
	@scripts/deps.sh browser
	@tests/browser/site.py build/site
test-slurm: ## a Slurm of two nodes here (root; slurm-wlm, munge): arrays, a task queued again, ReFrame if it is here
	@scripts/deps.sh slurm
	@$(MAKE) all
	@tests/slurm/cluster.py $(BIN)/bench $(BUILD)/slurm
test-mpi: ## trainings of 1, 2 and 3 processes (MPI)
	@scripts/deps.sh mpi
	@$(MAKE) MPI=1 ranked
ranked: $(BIN)/bench
	@tests/mpi/ranks.py $(BIN)/bench $(BIN)/mpi
man: all ## the manual page: man -l $(BIN)/bench.1
	$(BIN)/bench help man >$(BIN)/bench.1
install: all library ## program, library, manual page, completion and data to DESTDIR/PREFIX (/usr/local)
	@DESTDIR='$(DESTDIR)' PREFIX='$(PREFIX)' scripts/install.sh install $(BIN)/bench $(LIBRARY)
uninstall: ## remove what install wrote
	@DESTDIR='$(DESTDIR)' PREFIX='$(PREFIX)' scripts/install.sh uninstall
wheel: $(LIBRARY) ## Python package with the library inside, and its sources, in dist/: docs/library.md
	@scripts/wheel.sh $<
compare: all ## two runs: make compare A=results/run1 B=results/run2
	./bench compare $(A) $(B)
fuzz: ## hostile input, TIME seconds (60) in all, with clang's libFuzzer; a find is kept in build/
	@scripts/deps.sh clang
	@$(MAKE) CC=clang MODE=fuzz fuzz-all
fuzz-all: $(FUZZ:%=$(BUILD)/fuzz_%) $(BIN)/bench
	@tests/fuzz/run.sh $(BUILD) $(or $(TIME),60) $(FUZZ)
golden: $(BIN)/golden ## every golden file through every backend; also those of GOLDENS='DIR...'
	@for d in tests/golden tests/golden-import $(GOLDENS); do \
	    echo "golden check --golden $$d"; $< check --golden $$d || exit; done
check: ## what must pass before a commit: lint, test, bench check, a smoke sweep
	@$(MAKE) lint
	@$(MAKE) test
	@$(MAKE) all
	./bench check
	./bench @harness/sweeps/smoke.args --out $(BUILD)/smoke
# On the first our kernels run, by variants that use most of them; on the second, with none that it could
# run, the libraries beside the reference. Threads that wait sleep: spinning would take most of the time.
# The libraries choose for the CPU they see: what the environment asks of them is for the real one.
qemu: qemu-Haswell qemu-Nehalem ## bench check on CPUs without AVX-512 and without AVX: no instruction leaks
qemu-Haswell: private CASES := --variant shaw,linear --backend avx2
qemu-Nehalem: private CASES := --variant gtrxl --backend fast
qemu-%: all
	OMP_WAIT_POLICY=passive env -u OPENBLAS_CORETYPE -u ONEDNN_MAX_CPU_ISA -u DNNL_MAX_CPU_ISA qemu-x86_64 -cpu $* ./bench check --isolate fork $(CASES)
lint: ## format, includes, names, sizes, clang-tidy
	@scripts/deps.sh lint
	@scripts/lint.sh; ok=$$?; $(MAKE) -k tidy && exit $$ok
tidy: $(OBJ:.o=.tidy)
format: ## clang-format in place
	clang-format -i $(sort $(shell find variants harness tests -name '*.[ch]'))
clean: ## remove what was built
	rm -rf build bench
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { sub(/\$$\((BUILD|BIN)\)/, "build/MODE", $$2); printf "  %-12s %s\n", $$1, $$2 }' Makefile

.PHONY: man objects library wheel install uninstall compare all tests missing deps hooks demo figures test site test-browser test-site test-slurm test-mpi ranked sanitize thread fuzz fuzz-all golden check qemu lint tidy format clean help FORCE
.DELETE_ON_ERROR:
.SECONDARY:
