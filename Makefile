# Everything sets itself up: python3, make and git are all a machine needs.
# `make demo` runs the plain Python files, so that nobody waits for a compiler. All other targets compile the hot modules
# first; without a C compiler and Python.h the plain files run there too, and the build says so.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS := $(shell nproc 2>/dev/null || echo 2)
MUTATED := fair_k fair_k_bounded naimi_trehel bv95 raymond raymond_fd ricart_agrawala suzuki_kasami maekawa centralised leased
HOT := $(shell find src -name '*.pxd' -o -name '*.pyx') $(patsubst %.pxd,%.py,$(shell find src -name '*.pxd')) \
	$(shell grep -rl --include='*.py' 'from fairgate.core.declare import' src) src/fairgate/core/derive.py \
	src/fairgate/core/kinds.py tools/c_types.py tools/expand.py tools/stage.py

.PHONY: demo test quick lint bench bench-dht bench-net bench-live bench-instructions stress mutants spin docs install build wheel try-wheel clean help

help:
	@echo "make demo    eight processes share a gate of k=3, before your eyes"
	@echo "make test    everything that CI runs: types, style, all tests"
	@echo "make quick   the tests alone, without set-up"
	@echo "make stress  the long random runs"
	@echo "make mutants every statement of every protocol deleted in turn, and the rules of live gates broken: is it noticed?"
	@echo "make bench   speed, as ratios, against SimPy"
	@echo "make bench-dht  EE's rounds on 6,500 nodes, and a ring of a million"
	@echo "make bench-net  frames and connections of live peers, against a bare echo"
	@echo "make bench-live live gates beside Redis, ZooKeeper and etcd, where they are installed"
	@echo "make bench-instructions  machine instructions per event (needs valgrind); AGAINST=PYTHON compares two checkouts"
	@echo "make docs    build the site of the docs, in build/site"
	@echo "make spin    Fair-k again, by another checker (needs Debian's package spin)"
	@echo "make build   compile the hot modules again"
	@echo "make wheel   a wheel in dist/ that needs no compiler where it is installed, and a source distribution"
	@echo "make try-wheel  install that wheel into a fresh environment without a compiler, and run it"
	@echo "make clean   remove everything that was made"

demo: $(if $(wildcard $(VENV)/built),build,install)
	@$(BIN)/fairgate demo

test: build lint
	$(BIN)/python -m pytest -n $(JOBS)
	FAIRGATE_PURE=1 $(BIN)/python -m pytest -n $(JOBS) tests/core tests/generic tests/paper tests/scenarios tests/tools \
		tests/mutants/test_expand.py

quick:
	$(BIN)/python -m pytest -n $(JOBS)

lint: build
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

stress: build
	$(BIN)/python -m pytest -n $(JOBS) -m stress --timeout 1800 tests

mutants: build
	@failed=0; for each in $(MUTATED); do $(BIN)/fairgate check $$each --mutants || failed=1; done; \
	$(BIN)/python -m pytest -n $(JOBS) -m stress tests/mutants/test_live.py tests/mutants/test_shares.py || failed=1; exit $$failed

bench: build
	$(BIN)/python -m bench.speed

bench-dht: build
	$(BIN)/python -m bench.dht

bench-net: build
	$(BIN)/python -m bench.net

bench-live: build
	$(BIN)/python -m bench.live

bench-instructions: build
	$(BIN)/python -m bench.instructions $(if $(AGAINST),--against $(AGAINST))

spin:
	@papers/spin/run.sh

docs: $(VENV)/documenting
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "fairgate: open build/site/index.html"

# Three stamps: an empty environment; fairgate and what it needs to run, nothing compiled; everything compiled, with what
# the tests need.
install: $(VENV)/installed

build: $(VENV)/built

PIP := $(BIN)/pip --quiet --disable-pip-version-check

$(VENV)/made: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "fairgate needs Python 3.11 or newer: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	@echo "fairgate: installing what it needs into $(VENV), once"
	@$(PYTHON) -m venv $(VENV) \
		|| { echo "$(PYTHON) cannot make a virtual environment: install your system's python3-venv package"; exit 1; }
	@$(PIP) install 'setuptools>=77'
	@touch $@

$(VENV)/installed: $(VENV)/made setup.py
	@FAIRGATE_NO_COMPILE=1 $(PIP) install --no-build-isolation --no-compile --editable .
	@echo "fairgate: nothing is compiled yet, so the plain Python files will run (make build compiles the hot modules)"
	@touch $@

# Only what has changed is compiled again, but everything if setup.py has: it may hold other flags.
$(VENV)/built: $(VENV)/made setup.py $(HOT)
	@echo "fairgate: compiling (a minute or two, the first time)"
	@$(PIP) install 'Cython==3.3.1'
	@FAIRGATE_NO_COMPILE=1 $(PIP) install --no-build-isolation --editable '.[test]'
	@$(if $(filter setup.py,$?),CYTHON_FORCE_REGEN=1) $(BIN)/python setup.py --quiet build_ext --inplace \
		$(if $(filter setup.py,$?),--force) > /dev/null
	@$(BIN)/python -c 'from fairgate.sim.run import kind_of_build; print("fairgate:", kind_of_build(), "modules will run")'
	@touch $@

$(VENV)/documenting: $(VENV)/made
	@FAIRGATE_NO_COMPILE=1 $(PIP) install --no-build-isolation --editable '.[docs]'
	@touch $@

# By way of the source distribution, in a directory of its own: build/ may hold modules that no longer exist.
wheel: $(VENV)/made
	@rm -f dist/fairgate-*
	@mkdir -p build
	@$(PIP) install 'Cython==3.3.1'
	@FAIRGATE_NO_COMPILE=1 $(BIN)/python setup.py --quiet sdist > build/sdist.log 2>&1 || { cat build/sdist.log; exit 1; }
	@echo "fairgate: compiling a wheel (a minute or two)"
	@$(PIP) wheel --no-build-isolation --no-deps --wheel-dir dist dist/fairgate-*.tar.gz
	@ls dist/*

try-wheel: build wheel
	$(BIN)/python -m pytest -m stress tests/tidy/test_wheel.py

clean:
	rm -rf $(VENV) build dist src/*.egg-info
	find src -name '*.so' -delete
