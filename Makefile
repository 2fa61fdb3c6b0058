# Everything is installed into .venv by the project's own files; nothing else is needed but Python 3.11+.
#   make demo    the main job on embedded data, with a table and a figure
#   make test    the tests (of the extras that are installed: EXTRAS=all installs every one)
#   make test-long  those that take long: sweeps of simulations, trained networks
#   make lint    style, types, layers
#   make bench   speed, side by side with the usual way
#   make reproduce  the paper's tables, quick versions, on one page (results/index.html)
PYTHON ?= python3
EXTRAS ?= app,data,theory
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# One thread for each of the processes: more would only get in each other's way.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto
COVER  := marginal calibration heads adaptation
comma  := ,
stamp   = $(VENV)/.installed-$(subst $(comma),-,$(1))

.PHONY: demo test test-long lint bench reproduce clean
demo: $(call stamp,app)
	$(BIN)/sfboost demo

test: $(call stamp,$(EXTRAS)$(comma)dev)
	$(PYTEST) -m 'not long' $(foreach room,$(COVER),--cov=src/sfboost/$(room)) --cov-report= $(ARGS)
	$(BIN)/coverage report --fail-under=95

test-long: $(call stamp,$(EXTRAS)$(comma)dev)
	$(PYTEST) -m long $(ARGS)

lint: $(call stamp,$(EXTRAS)$(comma)dev)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(call stamp,$(EXTRAS)$(comma)dev)
	@for file in benchmarks/bench_*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

reproduce: $(call stamp,all)
	$(BIN)/sfboost reproduce here --quick $(ARGS)

$(BIN)/python:
	@echo "Setting up $(VENV) (once)"
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "sfboost needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-%: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing sfboost[$(subst -,$(comma),$*)] into $(VENV)"
	$(PIP) --editable '.[$(subst -,$(comma),$*)]'
	@touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .coverage
