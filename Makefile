# Every target sets up what it needs; the machine only needs python3, make and git.
# `make demo` and `make quick` run the plain Python files where nothing is compiled, so that nobody waits for a compiler.
# The other targets that run fairgate compile the hot modules first. Without a C compiler or Python.h, the plain files are
# used there too, and the build says so.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS := $(shell nproc 2>/dev/null || echo 2)
EXTRAS := test,all
TESTERS := $(shell expr $(JOBS) + 1)  # some tests wait for others rather than compute
# What is tested without compiled modules as well.
PLAIN := tests/core tests/generic tests/scenarios tests/tools tests/room \
	tests/live/test_guest_turns.py tests/mutants/test_expand.py tests/mutants/test_clusters.py
# Are the compiled modules there and up to date? A variable, so that `make -n quick` runs nothing.
IS_BUILT = $(shell $(MAKE) --question $(VENV)/built && echo yes)
MUTATED = $(BIN)/python -c 'from tests.mutants.test_deletions import EXPLAINED; print(*EXPLAINED)'
HOT := $(shell find src -name '*.pxd' -o -name '*.pyx') $(patsubst %.pxd,%.py,$(shell find src -name '*.pxd')) \
	$(shell grep -rl --include='*.py' 'from fairgate.core.declare import' src) src/fairgate/core/derive.py \
	src/fairgate/core/kinds.py $(wildcard src/fairgate/room/*.py) tools/c_types.py tools/expand.py tools/stage.py tools/tables.py

.PHONY: demo test suite compiled-suite plain-suite test-pythons quick lint bench bench-dht bench-one-line bench-net bench-live bench-hosts bench-commands bench-growth bench-instructions bench-peers stress test-peers mutants spin notebook results docs install build wheel try-wheel clean help

help:
	@echo "make demo         watch eight processes share a gate of k=3"
	@echo "make test         everything that CI runs: types, style, all tests"
	@echo "make quick T=tests/room/test_api.py  these tests alone, within seconds: nothing is compiled. Compiled modules"
	@echo "                  run if they are up to date, the plain Python files otherwise. Without T, the same tests as 'make"
	@echo "                  test', or those that it runs on plain Python"
	@echo "make test-pythons the same tests on every supported Python: from PATH, from pyenv, or from Debian sid, which is"
	@echo "                  installed into a folder (needs root and debootstrap); ONLY=3.14 for one, T=tests/room for some tests"
	@echo "make stress       the long random runs"
	@echo "make test-peers   the lock tests of CPython, kazoo, redis-py, filelock, fasteners, portalocker and python-redis-lock, run"
	@echo "                  against gates; needs a network the first time; ARGS=--reasons says what does not apply and why"
	@echo "make mutants      mutation testing: delete every statement of every protocol, break every rule of live gates"
	@echo "make notebook     run examples/papers.ipynb and store its outputs"
	@echo "make results RUN=DIR  make the docs pages of figures and claims from 'fairgate lab run all --paper --out DIR'"
	@echo "make docs         build the documentation site in build/site"
	@echo "make bench        simulator speed, relative to SimPy"
	@echo "make bench-dht    the DHT protocols on 6,500 nodes, and a ring of a million"
	@echo "make bench-one-line  one_line beside other protocols, in simulated seconds; ARGS='--latency FILE' adds a matrix"
	@echo "make bench-net    frames and connections of live peers, relative to a bare echo server"
	@echo "make bench-live   gates next to flock, GNU sem, filelock, posix_ipc, Redis, ZooKeeper and etcd, as far as they are"
	@echo "                  installed; ARGS='--only fairgate --seconds 2' measures less, ARGS=--help lists the options"
	@echo "make bench-hosts  gates between hosts next to Redis, ZooKeeper and etcd, in network namespaces (needs root)"
	@echo "make bench-commands  fairgate run next to flock, GNU sem and filelock, as far as they are installed"
	@echo "make bench-growth how a gate on one host grows with the number of processes"
	@echo "make bench-instructions  machine instructions per event (needs valgrind); AGAINST=PYTHON compares two checkouts"
	@echo "make bench-peers  join, leave, takeover and census with 64 peers in one cluster"
	@echo "make spin         check Fair-k with Spin (needs Debian's package spin)"
	@echo "make build        compile the hot modules"
	@echo "make wheel        build a wheel, which installs without a compiler, and a source distribution, in dist/"
	@echo "make try-wheel    install that wheel into a fresh environment without a compiler, and run it"
	@echo "make clean        remove everything that was built"

demo: $(if $(wildcard $(VENV)/built),build,install)
	@$(BIN)/fairgate demo

test: lint suite

suite: compiled-suite plain-suite

compiled-suite: build
	$(BIN)/python -m pytest -n $(TESTERS) $(T)

plain-suite: build
	FAIRGATE_PURE=1 $(BIN)/python -m pytest -n $(TESTERS) $(or $(T),$(PLAIN))

test-pythons: $(VENV)/made
	@$(BIN)/python -m tools.pythons --testers $(TESTERS) $(if $(ONLY),--only $(ONLY)) $(if $(T),--t "$(T)")

quick: $(VENV)/testing
	@if [ "$(IS_BUILT)" ]; then \
		echo "fairgate: testing the compiled modules"; $(BIN)/python -m pytest -n $(TESTERS) $(T); \
	else \
		echo "fairgate: testing the plain Python files (make build compiles the hot modules)"; \
		FAIRGATE_PURE=1 $(BIN)/python -m pytest -n $(TESTERS) $(or $(T),$(PLAIN)); \
	fi

lint: build
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

stress: build
	$(BIN)/python -m pytest -n $(JOBS) -m stress --timeout 1800 tests
	FAIRGATE_PURE=1 $(BIN)/python -m pytest -n $(JOBS) tests/paper

test-peers: build
	$(BIN)/python -m tests.peers $(ARGS)

mutants: build
	@failed=0; names=$$($(MUTATED)) || exit 1; for each in $$names; do $(BIN)/fairgate check $$each --mutants || failed=1; done; \
	$(BIN)/python -m pytest -n $(JOBS) -m stress tests/mutants/test_commands.py tests/mutants/test_live.py tests/mutants/test_live_clusters.py tests/mutants/test_room_live.py tests/mutants/test_shares.py tests/mutants/test_simulator.py tests/mutants/test_users_objects.py || failed=1; exit $$failed

bench: build
	$(BIN)/python -m bench.speed

bench-dht: build
	$(BIN)/python -m bench.dht

bench-one-line: build
	$(BIN)/python -m bench.one_line $(ARGS)

bench-net: build
	$(BIN)/python -m bench.net

bench-live: build
	$(BIN)/python -m bench.live $(ARGS)

bench-hosts: build
	$(BIN)/python -m bench.hosts $(ARGS)

bench-commands: build
	$(BIN)/python -m bench.commands

bench-growth: build
	$(BIN)/python -m bench.growth

bench-instructions: build
	$(BIN)/python -m bench.instructions $(if $(AGAINST),--against $(AGAINST))

bench-peers: build
	$(BIN)/python -m bench.peers $(ARGS)

spin:
	@papers/spin/run.sh

notebook: build
	$(BIN)/python -m tools.notebook examples/papers.ipynb

results: build
	$(BIN)/python -m tools.results $(RUN) docs/results

docs: $(VENV)/documenting
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "fairgate: open build/site/index.html"

# Stamp files: `made`, an empty environment; `installed`, fairgate and its dependencies, not compiled; `testing`, with the
# dependencies of the tests; `built`, compiled as well; `documenting`, with the dependencies of the docs.
install: $(VENV)/installed

build: $(VENV)/built

PIP := $(BIN)/pip --quiet --disable-pip-version-check
CYTHON := 'Cython==3.3.1'  # as in pyproject.toml

$(VENV)/made: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "fairgate needs Python 3.11 or newer: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	@echo "fairgate: installing dependencies into $(VENV) (first time only)"
	@$(PYTHON) -m venv $(VENV) \
		|| { echo "$(PYTHON) cannot create a virtual environment: install your system's python3-venv package"; exit 1; }
	@$(PIP) install 'setuptools>=77'
	@touch $@

$(VENV)/installed: $(VENV)/made setup.py
	@FAIRGATE_NO_COMPILE=1 $(PIP) install --no-build-isolation --no-compile --editable .
	@echo "fairgate: using the plain Python files (make build compiles the hot modules)"
	@touch $@

$(VENV)/testing: $(VENV)/made
	@echo "fairgate: installing what the tests need"
	@$(PIP) install $(CYTHON)
	@FAIRGATE_NO_COMPILE=1 $(PIP) install --no-build-isolation --editable '.[$(EXTRAS)]'
	@touch $@

# Only changed modules are compiled again, but all of them if setup.py has changed: its flags may be different.
$(VENV)/built: $(VENV)/testing setup.py $(HOT)
	@touch $@.begun  # a file that is changed during the build is newer than this, and will be compiled next time
	@echo "fairgate: translating changed modules to C (compiling all of them takes a minute or two, or several on a busy machine)"
	@$(PIP) install $(CYTHON)  # for an environment whose Cython is of another version
	@$(if $(filter setup.py,$?),CYTHON_FORCE_REGEN=1) $(BIN)/python setup.py --quiet build_ext --inplace \
		$(if $(filter setup.py,$?),--force) > /dev/null
	@$(BIN)/python -c 'from fairgate.sim.run import kind_of_build; print("fairgate:", kind_of_build(), "modules will run")'
	@mv $@.begun $@

$(VENV)/documenting: $(VENV)/made
	@FAIRGATE_NO_COMPILE=1 $(PIP) install --no-build-isolation --editable '.[docs]'
	@touch $@

# From the source distribution, in its own directory, because build/ may contain modules that no longer exist.
wheel: $(VENV)/made
	@rm -f dist/fairgate-*
	@mkdir -p build
	@$(PIP) install $(CYTHON)
	@FAIRGATE_NO_COMPILE=1 $(BIN)/python setup.py --quiet sdist > build/sdist.log 2>&1 || { cat build/sdist.log; exit 1; }
	@echo "fairgate: compiling a wheel (a minute or two, several on a busy machine)"
	@$(PIP) wheel --no-build-isolation --no-deps --wheel-dir dist dist/fairgate-*.tar.gz
	@ls dist/*

try-wheel: build wheel
	$(BIN)/python -m pytest -m stress tests/tidy/test_wheel.py

clean:
	rm -rf $(VENV) build dist src/*.egg-info
	find src -name '*.so' -delete
