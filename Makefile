# Every target makes .venv by itself; only Python 3.11+ with pip is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Every program that a test starts would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo console screenshots test lint types collected unit cluster environments fuzz fuzz-costs sanitize js js-package js-tests js-bench js-soak without-js soak bench economy slips trial docs lock dist clean

demo: $(VENV)/core
	$(BIN)/python examples/demo.py

# Pages to try the demo's tools in: run the script, watch its timeline, answer its approval.
console: $(VENV)/core
	$(BIN)/moonbox console examples/console.lua --tools examples/demo.py --tools examples/payments.py \
		--journal $(VENV)/console.db $(CONSOLE)

screenshots: $(VENV)/installed
	$(BIN)/python docs/images/make.py
	$(BIN)/python docs/images/console.py

# Side by side what has one process, or waits for downloads; then the tests.
HAS_NODE := $(shell command -v node)
test: $(VENV)/installed
	$(MAKE) --jobs=3 environments lint types collected $(if $(HAS_NODE),js-package,without-js)
	$(MAKE) --jobs=2 unit $(if $(HAS_NODE),js-tests)
	$(MAKE) cluster

without-js:
	@echo "Node is not installed: the npm package in js/ is not tested"

# The npm package: its types, its build, its tests, and a tarball that an empty project can install.
js: js-package
	$(MAKE) js-tests

js-package: $(VENV)/installed
	@command -v node >/dev/null || { echo "make js needs Node 20.19 or later, with npm; it is not installed" >&2; exit 1; }
	cd js && npm ci --silent --no-audit --no-fund
# Not npm ci: it refuses a lock that lacks the packages of other platforms.
	cd js/test/apps && npm install --no-save --silent --no-audit --no-fund
	cd js && PYTHON=$(CURDIR)/$(BIN)/python npm run --silent build

# It runs beside other tests: what it prints comes in the end, all of it where something failed.
js-tests:
	@cd js && npm test --silent > ../$(VENV)/js-tests.log 2>&1 && tail -n 8 ../$(VENV)/js-tests.log || { cat ../$(VENV)/js-tests.log; exit 1; }

# The first result beside quickjs-emscripten, and the memory of fifty Repls that run at once.
js-bench: js-package
	cd js && node scripts/bench.mjs

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/installed
	$(BIN)/mypy src tests examples benchmarks

# Four more than cores: tests wait now and then. Two more take a minute longer on two cores.
TEST_PROCESSES ?= $(shell $(PYTHON) -c "import os; print(4 + (os.cpu_count() or 1))")

# pytest rewrites the assertions of a file when it is collected first, and keeps the result: done once here, and not by
# every process of `unit`.
collected: $(VENV)/installed
	@$(BIN)/python -m pytest -qq --collect-only --no-header > $(VENV)/collected.log || { tail -n 40 $(VENV)/collected.log; exit 1; }

# Files keep the order that tests/conftest.py gives them: the longest first.
unit: $(VENV)/installed
	PYTHONHASHSEED=0 $(BIN)/python -m pytest -q -n $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder --ignore $(ON_A_CLUSTER)

# A Ray cluster of three nodes needs the machine for itself: Ray gives nodes up that start slowly.
ON_A_CLUSTER := tests/cluster/test_cluster.py
cluster: $(VENV)/installed
	$(BIN)/python -m pytest -q -rs $(ON_A_CLUSTER)

# What tests install for themselves; those that find it ready begin at once.
environments: $(VENV)/installed
	$(BIN)/python -m tests.environments

# How long it goes on: make fuzz MINUTES=60
fuzz: $(VENV)/installed
	$(MAKE) --jobs=2 fuzz-costs sanitize MINUTES=$(or $(MINUTES),60)

fuzz-costs: $(VENV)/installed
	$(BIN)/python -m tests.costs.fuzz --minutes $(or $(MINUTES),60)
	$(BIN)/python -m tests.costs.strangers $(or $(MINUTES),60)

# The C parts, built with AddressSanitizer and UBSan, and random frames and scripts for them. Needs gcc on Linux.
sanitize: $(VENV)/installed
	$(BIN)/python -m tests.costs.sanitize --minutes $(or $(MINUTES),2)

# Runs of many kinds for long, then with all of their tries the tests that chance decides about.
LONG_TESTS := $(addprefix tests/,adapters attacks audit benchmarks cli codemode conformance console costs faults hostapi http_api \
	durable knowledge languages mcp release sandbox tools worker)

soak: $(VENV)/installed
	$(BIN)/python benchmarks/soak.py
	MOONBOX_LONG=1 $(BIN)/python -m pytest -q -n $(TEST_PROCESSES) --dist loadfile $(LONG_TESTS)
	MOONBOX_LONG=1 $(BIN)/python -m pytest -q -rs -s --timeout 3600 $(ON_A_CLUSTER)
	$(if $(HAS_NODE),$(MAKE) js-soak)

# Apps built with every bundler, Next among them, which alone is larger than all others together.
js-soak: js-package
	cd js/test/apps/next && npm install --no-save --silent --no-audit --no-fund
	cd js && MOONBOX_LONG=1 node --test test/bundlers.test.mjs

bench: $(VENV)/installed
	$(BIN)/python benchmarks/compare.py
	$(BIN)/python benchmarks/real_script.py

economy: $(VENV)/installed
	$(BIN)/python benchmarks/economy.py

slips: $(VENV)/installed
	$(BIN)/python benchmarks/slips.py --write

# A model of your own: make trial TRIAL="--provider anthropic --model NAME". Without it, the recorded one.
trial: $(VENV)/installed
	$(BIN)/python benchmarks/trial.py $(TRIAL)

docs: $(VENV)/installed
	$(BIN)/zensical build --strict

# Only what a lock names with its hash is installed, also to build moonbox: so without an environment for the build.
# uv installs everything; it is several times faster than pip, which is used only to install uv.
$(VENV)/core: pyproject.toml requirements.lock requirements-dev.lock src/moonbox/_version.py
	$(PYTHON) -m venv $(VENV)
	sed -n '/^uv==/,/[^\\]$$/p' requirements-dev.lock > $(VENV)/uv.lock
	$(BIN)/python -m pip install --quiet --require-hashes --only-binary :all: --requirement $(VENV)/uv.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --only-binary :all: --requirements requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@

# Compiled at once: a package whose source brings a warning would else fail the test that is the first to import it, for
# there warnings are errors.
$(VENV)/installed: $(VENV)/core requirements-dev.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --compile-bytecode --requirements requirements-dev.lock \
		--require-build-hashes --build-constraints requirements-build.lock
	@touch $@

# The versions that the demo and development use, for every platform; run it after a change of the dependencies. The demo has
# `mcp`, so that `make console` can show MCP servers.
COMPILE = $(BIN)/uv pip compile pyproject.toml --extra console --universal --python-version 3.11 --generate-hashes \
	--no-annotate --no-header --quiet --upgrade
lock: $(VENV)/installed
	$(COMPILE) --group dev --output-file requirements-dev.lock
	$(COMPILE) --extra mcp --group build --constraint requirements-dev.lock --output-file requirements.lock
	$(COMPILE) --group release --constraint requirements-dev.lock --output-file requirements-build.lock

# What is published, with the versions that it was tested with as a CycloneDX bill of materials.
dist: $(VENV)/core requirements-build.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --only-binary :all: --requirements requirements-build.lock
	$(BIN)/python -m build --no-isolation --outdir dist
	$(BIN)/cyclonedx-py requirements requirements.lock --pyproject pyproject.toml --mc-type library --output-reproducible \
		--output-file dist/moonbox.cdx.json

clean:
	rm -rf $(VENV) .cache build dist site .pytest_cache .mypy_cache .ruff_cache
