# Builds, checks and tests everything. `make` alone gives .venv/bin/tstorm and the C programs.
#   make demo     compile and run an example with real traffic, planned against measured
#   make test     checks, C tests, Python tests; what needs root or a missing tool is skipped, named
#   make test-cluster   the tests on a real Kubernetes cluster, which it builds first; root only
#   make kernel   the kernel for virtual time, built once into ~/.cache/tstorm
#   make test-virtual   the tests in virtual time, which need that kernel
#   make test-netem     the tests of the kernel datapath, under user-mode Linux where this kernel lacks it
#   make check    linters, types, import rules, formatting, C warnings as errors
#   make bench    measurements into bench/results and docs/performance.md
#   make bench-cluster  1,000 nodes and 5,000 pods, simulated, on the test cluster; root only
#   make bench-virtual  20 experiments with real programs, three times each in virtual time, and the paper's
#                       experiments (docs/fidelity.md); needs its kernel
#   make bench-find  whether tstorm why finds what decided, and hunts their bugs: some hours
#   make bench-papers  the published experiments in real time, beside peers (docs/fidelity.md): an hour at most
#   make fuzz     every fuzzer for FUZZ_SECONDS each
#   make trial    runs killed and stopped at random moments, hostile inputs and frames: TRIAL_SECONDS each
#   make golden   regenerate tdl/lalr_tables.json, the golden files, docs/errors.md and the editors' grammar
#   make clean    remove what was built (not runs/)
# Variables: PYTHON=python3.12 (which Python the environment gets), VENV, CC, FUZZ_SECONDS,
#   TRIAL_SECONDS, TESTS.
VENV ?= .venv
FUZZ_SECONDS ?= 20
TRIAL_SECONDS ?= 600
TESTS ?=
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check --quiet
# uv takes a tenth of pip's time, and does not read pip's settings: where it cannot, pip does.
INSTALL = $(PIP) install uv && $(VENV)/bin/uv pip install --quiet --python $(PY) $(2) --editable '$(1)' \
	|| $(PIP) install --editable '$(1)'
PACKAGES := tdl compiler manifests runtime tstorm
export FUZZ_SECONDS TRIAL_SECONDS

all: $(VENV)/.installed programs
	@echo "ready. Type:  . $(VENV)/bin/activate    and then:  tstorm --help"

$(PY):
	@python=$$(scripts/find-python) && echo "creating $(VENV) with $$python" \
		&& "$$python" -m venv $(VENV)

# Editable: the sources are used in place. The programs come from tcal_c/build.
$(VENV)/.installed: pyproject.toml setup.py | $(PY)
	@echo "installing tstorm into $(VENV)"
	@$(call INSTALL,.,--compile-bytecode)
	@touch $@

$(VENV)/.dev: pyproject.toml setup.py | $(PY)
	@echo "installing tstorm and the development tools into $(VENV)"
	@$(call INSTALL,.[dev])
	@touch $@ $(VENV)/.installed

$(VENV)/.bench: pyproject.toml setup.py | $(PY)
	@echo "installing tstorm and what it is measured against into $(VENV)"
	@$(call INSTALL,.[bench])
	@touch $@ $(VENV)/.installed

programs:
	@$(MAKE) --no-print-directory -C tcal_c

demo: all
	@$(PY) -m bench.demo

test: $(VENV)/.dev programs
	@$(PY) scripts/run_tests.py $(TESTS)

test-cluster: $(VENV)/.dev programs
	@tests/cluster/cluster check machine
	@tests/cluster/cluster build
	@tests/cluster/cluster images
	@$(PY) scripts/run_tests.py --cluster $(TESTS)

kernel: all
	@$(VENV)/bin/tstorm kernel build

test-virtual: $(VENV)/.dev programs kernel
	@$(PY) scripts/run_tests.py --virtual $(TESTS)

test-netem: $(VENV)/.dev programs
	@$(PY) scripts/run_tests.py --netem $(TESTS)

check: $(VENV)/.dev
	@scripts/check $(VENV)/bin

ctest:
	@$(MAKE) --no-print-directory -C tcal_c test

bench: $(VENV)/.bench programs
	@$(PY) -m bench
	@$(PY) -m bench.hosts

bench-cluster: $(VENV)/.dev programs
	@tests/cluster/cluster build
	@tests/cluster/cluster images
	@$(PY) tests/cluster/with_cluster.py $(PY) -m bench.cluster

bench-virtual: $(VENV)/.dev programs
	@$(PY) -m bench.virtual.proof
	@$(PY) -m bench.virtual.paper
	@$(PY) -m bench.report

bench-find: $(VENV)/.dev programs
	@$(PY) -m bench.virtual.why
	@$(PY) -m bench.virtual.hunt
	@$(PY) -m bench.report

bench-papers: $(VENV)/.dev programs
	@$(PY) -m bench.papers

fuzz: $(VENV)/.dev programs
	@$(PY) scripts/seeded.py fuzz
	@$(MAKE) --no-print-directory -C tcal_c fuzz

trial: $(VENV)/.dev programs
	@$(PY) scripts/seeded.py trials

golden: $(VENV)/.dev programs
	@$(PY) -m tdl.lalr_tables
	@$(PY) -m tests.golden.regenerate
	@$(PY) -m tests.manifests.recorded
	@$(PY) -m tests.formats.goldens
	@$(PY) -m tdl.codes.catalogue > docs/errors.md.new && mv docs/errors.md.new docs/errors.md
	@$(PY) -m tdl.tokens.textmate > docs/editors/vscode/new && \
		mv docs/editors/vscode/new docs/editors/vscode/syntaxes/tdl.tmLanguage.json

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis \
		.import_linter_cache
	find $(PACKAGES) tests bench -name __pycache__ -type d -prune -exec rm -rf {} +
	@$(MAKE) --no-print-directory -C tcal_c clean

.PHONY: all programs demo kernel test test-cluster test-netem test-virtual check ctest bench bench-cluster bench-find bench-papers bench-virtual fuzz trial golden clean
