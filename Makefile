# Everything is installed into .venv by the project's own files; nothing else is needed but Python 3.11+.
#   make demo    the main job on embedded data, with a table and a figure
#   make test    the tests (of the extras that are installed: EXTRAS=all installs every one)
#   make test-long  those that take long: sweeps of simulations, trained networks
#   make coverage   the tests of the method's own rooms, traced: 95 % of their lines and branches or more
#   make test-lowest  the tests with the lowest versions that pyproject.toml allows, without torch
#   make dist-check   wheel and sdist, built, checked and tried: the sdist's own tests, the wheel's command
#   make lint    style, types, layers
#   make harden  damaged files for every reader and signals at random moments, many more than the tests try (hours)
#   make mutants faults written by hand, each of which the quick tests of its room must see
#   make audit   what is known of holes in the versions of constraints.txt
#   make constraints  constraints.txt from what is installed
#   make bench   speed, side by side with the usual way
#   make docs    the site (site/index.html), warnings as errors, links checked
#   make reproduce  the paper's tables, quick versions, on one page (results/index.html)
PYTHON ?= python3
EXTRAS ?= app,data
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# One thread for each of the processes: more would only get in each other's way. Each begins with one half of the tests, so that
# what the tests of a file share is made once, and takes from the other what is left at the end. What is compiled is kept, whatever
# the environment says: tests start many processes.
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal
METHOD := marginal calibration heads adaptation
# Fresh environments, and what is unpacked into them.
TRIES  := build/tries
comma  := ,
stamp   = $(VENV)/.installed-$(subst $(comma),-,$(1))

.PHONY: demo test test-long coverage test-lowest dist-check lint harden mutants audit constraints bench reproduce clean docs
demo: $(call stamp,app)
	$(BIN)/sfboost demo

test: $(call stamp,$(EXTRAS)$(comma)dev$(comma)lab)
	$(PYTEST) -m 'not long' $(ARGS)

test-long: $(call stamp,$(EXTRAS)$(comma)dev$(comma)lab)
	$(PYTEST) -m long $(ARGS)

# Apart from the others, because tracing costs a third more; long ones too. A room is covered by its own tests.
coverage: $(call stamp,$(EXTRAS)$(comma)dev$(comma)lab)
	$(PYTEST) $(METHOD:%=tests/%) $(METHOD:%=src/sfboost/%) \
	  $(METHOD:%=--cov=src/sfboost/%) --cov-report= $(ARGS)
	$(BIN)/coverage report --fail-under=95

# Old versions of one library call what is deprecated in the newest of another: no fault of ours.
test-lowest: $(call stamp,release)
	$(BIN)/uv venv --quiet --clear --python $(PYTHON) $(TRIES)/lowest
	$(BIN)/uv pip install --quiet --python $(TRIES)/lowest --resolution lowest-direct --editable '.[app,data,dev]' --editable lab
	OMP_NUM_THREADS=1 $(TRIES)/lowest/bin/python -m pytest -n auto --dist worksteal -m 'not long' -W ignore::DeprecationWarning $(ARGS)

dist-check: $(call stamp,release)
	rm -rf dist $(TRIES)/sdist $(TRIES)/wheel
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	@test $$(cat dist/*.whl | wc -c) -le 600000 || { echo "The wheel is larger than 600 kB: what is in it that should not be?"; exit 1; }
	$(PYTHON) -m venv $(TRIES)/wheel
	$(TRIES)/wheel/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt "$$(echo dist/*.whl)[app]"
	cd $(TRIES) && wheel/bin/sfboost demo --repeats 1 --no-show --out demo
	mkdir -p $(TRIES)/sdist && tar -xzf dist/*.tar.gz -C $(TRIES)/sdist --strip-components 1
	$(MAKE) -C $(TRIES)/sdist test PYTHON=$(PYTHON) EXTRAS=$(EXTRAS)

lint: $(call stamp,$(EXTRAS)$(comma)dev$(comma)lab)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/check_golden.py
	$(BIN)/python tools/count_code.py

harden: $(call stamp,all$(comma)dev$(comma)lab)
	OMP_NUM_THREADS=1 $(BIN)/python tools/fuzz.py
	OMP_NUM_THREADS=1 $(BIN)/python tools/kills.py

mutants: $(call stamp,$(EXTRAS)$(comma)dev$(comma)lab)
	$(BIN)/python tools/mutants.py $(ARGS)

# Where the database cannot be reached nothing was looked up, and that is no pass.
audit: $(call stamp,release)
	@$(BIN)/python -c "from urllib.request import urlopen; urlopen('https://pypi.org/pypi/pip/json', timeout=30)" 2>/dev/null \
	  || { echo "The database of known holes (pypi.org) cannot be reached: nothing was looked up."; exit 2; }
	$(BIN)/pip-audit --requirement constraints.txt --no-deps --disable-pip

constraints: $(call stamp,all$(comma)docs$(comma)dev$(comma)lab)
	{ grep '^#' constraints.txt; $(BIN)/python -m pip freeze --all --exclude-editable | grep '==' | grep -v '^pip==' \
	  | sed 's/+cpu$$//' | LC_ALL=C sort --ignore-case; } > constraints.new
	mv constraints.new constraints.txt

bench: $(call stamp,$(EXTRAS)$(comma)dev$(comma)lab)
	@for file in benchmarks/bench_*.py lab/benchmarks/bench_*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

docs: $(call stamp,all$(comma)docs$(comma)dev$(comma)lab)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

reproduce: $(call stamp,all$(comma)lab)
	$(BIN)/sfboost-lab reproduce here --quick $(ARGS)

$(BIN)/python:
	@echo "Setting up $(VENV) (once)"
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "sfboost needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

# "lab" is no extra of the library but the laboratory, a package beside it.
$(VENV)/.installed-%: pyproject.toml lab/pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing sfboost[$(subst -,$(comma),$*)] into $(VENV)"
	$(PIP) --editable '.[$(subst -,$(comma),$(subst -lab,,$*))]' $(if $(findstring -lab,$*),--editable 'lab$(if $(findstring all,$*),[r])')
	@touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .coverage
