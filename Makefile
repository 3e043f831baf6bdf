# Targets of the repository; `make` alone lists them. Everything installs into .venv with pip.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
STAMP := $(VENV)/.installed
SOURCES := pyproject.toml constraints.txt

.PHONY: help demo test test-full check bench golden format clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed: make PYTHON=python3.11") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)

$(STAMP)-demo: $(SOURCES) | $(VENV)/bin/python
	$(PIP) --editable '.[semantic,viz]'
	@touch $@

$(STAMP)-dev: $(SOURCES) | $(VENV)/bin/python
	$(PIP) --editable '.[all,dev]'
	@touch $@ $(STAMP)-demo

demo: $(STAMP)-demo ## install and run the main job on the bundled sample and this repository
	$(BIN)/scoped-retrieval demo

test: $(STAMP)-dev ## install and run the tests
	$(BIN)/python -m pytest -n auto --dist loadgroup

test-full: $(STAMP)-dev ## the tests with kill tests and large properties, run before a release
	TEST_PROFILE=full $(BIN)/python -m pytest -n auto --dist loadgroup

check: $(STAMP)-dev ## lint, types and import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright --level error --pythonpath $(BIN)/python
	$(BIN)/lint-imports

bench: $(STAMP)-dev ## 10,000 requests over 100,000 chunks, recorded in data/results
	$(BIN)/python tests/bench/ten_thousand.py --record

golden: $(STAMP)-dev ## write the golden files anew; read the diff before you commit it
	UPDATE_GOLDEN=1 $(BIN)/python -m pytest -n auto --dist loadgroup tests -m golden

format: $(STAMP)-dev ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## remove what the targets made
	rm -rf $(VENV) .demo build dist .pytest_cache .ruff_cache .hypothesis .basedpyright
