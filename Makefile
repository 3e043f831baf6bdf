# Targets of the repository; `make` alone lists them. Everything installs into .venv with pip, and modules are compiled
# by what imports them: a quarter of what is installed is ever imported. Each process would compile anew without files.
unexport PYTHONDONTWRITEBYTECODE
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BENCH := .venv-bench
ADAPTERS := .venv-adapters
BIN := $(VENV)/bin
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt
PIP := $(BIN)/python $(PIP_INSTALL)
STAMP := $(VENV)/.installed
SOURCES := pyproject.toml constraints.txt

.PHONY: help demo test test-full check bench bench-context bench-page docs golden notebooks prose release-check surfaces adapters format clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed: make PYTHON=python3.11") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)

$(STAMP)-demo: $(SOURCES) | $(VENV)/bin/python
	$(PIP) --editable '.[semantic,viz]'
	@touch $@

$(STAMP)-dev: $(SOURCES) | $(VENV)/bin/python
	$(PIP) --editable '.[all,dev]'
	@touch $@ $(STAMP)-demo

demo: $(STAMP)-demo ## install; one question on the bundled sample, its refused twin, and an HTML report
	$(BIN)/scoped-retrieval demo

test: $(STAMP)-dev ## install and run the tests
	$(BIN)/python -m pytest -n auto --dist loadgroup

test-full: $(STAMP)-dev ## the tests with kill tests and large properties, run before a release
	TEST_PROFILE=full $(BIN)/python -m pytest -n auto --dist loadgroup

check: $(STAMP)-dev ## lint, types, import rules and prose
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright --level error --pythonpath $(BIN)/python
	rm -rf .lint && mkdir -p .lint/scoped_retrieval && ln -s ../../nodes ../../pipeline .lint/scoped_retrieval
	cd .lint && $(abspath $(BIN))/lint-imports --config ../pyproject.toml # which reads no package of several folders
	$(BIN)/python tests/prose/prose_check.py

prose: $(STAMP)-dev ## prose of docs, docstrings and messages against a word list; PROSE_ARGS="--all" or "--lower"
	$(BIN)/python tests/prose/prose_check.py $(PROSE_ARGS)

$(BENCH)/.installed: $(SOURCES) bench/peers.txt
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed: make PYTHON=python3.11") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python $(PIP_INSTALL) --requirement bench/peers.txt --editable '.[all]'
	@touch $@

bench: $(BENCH)/.installed ## the table against peers, in a venv of its own; BENCH_ARGS="--quick" or "--record"
	$(BENCH)/bin/python bench/run.py $(BENCH_ARGS)

bench-context: $(STAMP)-dev ## what inputs of the context policy show and cost; BENCH_ARGS="--transcripts FOLDER", "--turns N" or "--record"
	$(BIN)/python bench/context_turns.py $(BENCH_ARGS)

bench-page: $(BENCH)/.installed ## docs/benchmarks.md and its curves from the recorded rows
	$(BENCH)/bin/python bench/bench_page.py

docs: $(STAMP)-dev ## the documentation site, built into site/; broken links are errors
	$(BIN)/zensical build --clean --strict

golden: $(STAMP)-dev ## write the golden files anew; read the diff before you commit it
	UPDATE_GOLDEN=1 $(BIN)/python -m pytest -n auto --dist loadgroup tests -m golden

notebooks: $(STAMP)-dev ## execute the notebooks twice, and keep the outputs that both agree on
	$(BIN)/python tests/notebooks/run.py

release-check: $(STAMP)-dev ## wheel and sdist, installed and used on every supported Python; RELEASE_ARGS="--present"
	$(BIN)/python tests/release/run.py $(RELEASE_ARGS)

$(STAMP)-surfaces: $(STAMP)-dev tests/surfaces/tools.txt
	$(PIP) --requirement tests/surfaces/tools.txt
	@touch $@

surfaces: $(STAMP)-surfaces ## the HTML pages in a headless Chromium: console, requests, accessibility; CHROMIUM=PATH
	$(BIN)/python tests/surfaces/run.py

$(ADAPTERS)/.installed: $(SOURCES)
	$(PYTHON) -m venv $(ADAPTERS)
	$(ADAPTERS)/bin/python $(PIP_INSTALL) --editable '.[langchain,llamaindex,haystack]' pytest hypothesis
	@touch $@

adapters: $(ADAPTERS)/.installed ## the adapters against LangChain, LlamaIndex and Haystack, in a venv of its own
	HAYSTACK_TELEMETRY_ENABLED=False LANGSMITH_TRACING=false \
		$(ADAPTERS)/bin/python -m pytest -o filterwarnings=default tests/adapters

format: $(STAMP)-dev ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## remove what the targets made
	rm -rf $(VENV) $(BENCH) $(ADAPTERS) .bench .demo build dist site .cache .pytest_cache .ruff_cache .hypothesis .basedpyright .lint
