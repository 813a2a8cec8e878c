# Everything runs in a virtual environment of its own; nothing has to be installed beforehand but
# Python 3.11 or newer.
#
#   make test     the test suite                 make lint    the checks of .pre-commit-config.yaml
#   make demo     the main job, on real data     make bench   the benchmarks
#   make audit    the long privacy audits        make docs    the documentation, in site/, and its tests
#   make fuzz     thousands of fits with anything
#   make clean    remove what make has made      make regression  costs and times against stored ones
#   make package  the wheel and the source archive (the same bits in two builds), their bill of
#                 materials, and the tests with nothing but the wheel
#   make certify  lower bounds of epsilon, beside the claims
#   make partitions  tables in parts on clusters of Dask, Spark (needs Java) and Ray
#   make prove    the machine-checked proofs; needs Coq, and says how to install it
#
# PYTHON=/path/to/python3  chooses the interpreter     PYTEST_ARGS="-k ledger -x"  goes to pytest
# VENV=.venv-3.13          keeps a second environment beside the first
# CERTIFY_ARGS="--jobs 8"  goes to python -m benchmarks.certify all

.DEFAULT_GOAL := test
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: test demo audit fuzz certify partitions prove bench regression lint docs package clean help

VENV ?= .venv
PYTHON ?=
PYTEST_ARGS ?=
CERTIFY_ARGS ?=
PARALLEL := -n auto --maxprocesses=4 --dist=worksteal

# Not compiled anew by every worker and by every program that a test starts: where this is set, to
# collect the tests takes twice the time. `make clean` removes what is written.
export PYTHONDONTWRITEBYTECODE :=

BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input

test: $(VENV)/.has-test
	$(BIN)/python -m pytest $(PARALLEL) $(PYTEST_ARGS)

demo: $(VENV)/.has-plot $(VENV)/.has-pandas
	$(BIN)/python examples/run_demo.py

audit: $(VENV)/.has-test
	$(BIN)/python -m pytest $(PARALLEL) -m slow --timeout=3600 $(PYTEST_ARGS)

certify: $(VENV)/.has-test
	$(BIN)/python -m benchmarks.certify all $(CERTIFY_ARGS)

# In one process: each cluster starts two.
partitions: $(VENV)/.has-test-partitions
	$(BIN)/python -m pytest tests/_partitions -m "slow or not slow" --timeout=1800 $(PYTEST_ARGS)

# What is false on purpose has to be refused, too.
prove: | $(BIN)/python
	$(BIN)/python proofs/check.py
	$(BIN)/python proofs/planted.py

fuzz: $(VENV)/.has-test
	$(BIN)/python -m pytest $(PARALLEL) tests/fuzz -m "slow or not slow" --timeout=3600 $(PYTEST_ARGS)

bench: $(VENV)/.has-bench
	@set -e; for script in benchmarks/*.py; do \
	  case "$$script" in */_* | */regression.py) continue ;; esac; \
	  echo "== $$script"; $(BIN)/python "$$script"; done

regression: $(VENV)/.has-test
	$(BIN)/python benchmarks/regression.py --check

lint: $(VENV)/.has-lint
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/pre-commit run --all-files --show-diff-on-failure

docs: $(VENV)/.has-docs $(VENV)/.has-test
	$(BIN)/python -m pytest $(PARALLEL) -m "docs and not slow" $(PYTEST_ARGS)
	$(BIN)/python -m sphinx -W --keep-going -q -j auto -d build/doctrees -b html doc site
	$(BIN)/python doc/_ext/check_links.py site

# An environment of its own, whose package is found before that of the checkout.
# Two builds of one commit have the same bits: whoever builds it again can compare.
package: export SOURCE_DATE_EPOCH := $(shell git log -1 --format=%ct 2>/dev/null || echo 1577836800)
package: $(VENV)/.has-package
	rm -rf -- dist build/wheel build/again
	$(BIN)/python -m build
	$(BIN)/python -m build --outdir build/again
	@set -e; for file in dist/*; do cmp "$$file" "build/again/$${file#dist/}"; done
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python -m venv build/wheel
	build/wheel/bin/python -m pip install --quiet --disable-pip-version-check --no-input "$$(ls dist/*.whl)[test]"
	build/wheel/bin/python .ci/sbom.py sklearn-dp dist/sklearn-dp.cdx.json dist/*.whl
	PYTHONPATH="$$(build/wheel/bin/python -c 'import sysconfig as s; print(s.get_path("purelib"))'):$(CURDIR)" \
	  build/wheel/bin/pytest $(PARALLEL) $(PYTEST_ARGS)

clean:
	rm -rf -- "$(VENV)" proofs/*.vo* proofs/.*.aux build dist site doc/generated doc/auto_examples doc/project doc/proofs/estimators doc/proofs/tests .pytest_cache .hypothesis .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -not -path './.venv*' -prune -exec rm -rf -- {} +

help:
	@sed -n '/^#   /s/^#   //p' Makefile

# One environment, one stamp for each extra. A stamp is older than pyproject.toml when the
# dependencies may have changed; the install is editable, so changes of the sources need none.
$(VENV)/.has-%: pyproject.toml | $(BIN)/python
	@echo "Installing sklearn-dp[$*] into $(VENV) ..."
	$(PIP_INSTALL) --editable '.[$*]'
	@touch $@

$(BIN)/python:
	@set -e; \
	for candidate in $(if $(PYTHON),"$(PYTHON)",python3 python3.14 python3.13 python3.12 python3.11 python); do \
	  if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	    found="$$candidate"; break; fi; done; \
	if [ -z "$${found:-}" ]; then \
	  echo "make: no Python 3.11 or newer$(if $(PYTHON), at PYTHON=$(PYTHON), on the PATH)." >&2; \
	  echo "make: install one, or name it: make PYTHON=/path/to/python3 $(MAKECMDGOALS)" >&2; exit 1; fi; \
	echo "Creating $(VENV) with $$("$$found" --version) ..."; \
	if ! "$$found" -m venv "$(VENV)"; then \
	  rm -rf -- "$(VENV)"; \
	  echo "make: '$$found -m venv' failed; does this Python have its venv and pip modules?" >&2; \
	  echo "make: (on Debian and Ubuntu they are in the package python3-venv)" >&2; exit 1; fi
