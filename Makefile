# `make` lists the targets. Everything is installed into .venv, from PyPI, at the versions of
# constraints.txt; nothing is reinstalled while constraints.txt and pyproject.toml stay as they are.

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$python && break; done)
PIP_INSTALL = $(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt

# The run that the demo analyzes first, and the one that it makes on this machine.
DEMO_RUN ?= traces/h200-decode-qwen2.5-0.5b
DEMO_OUT ?= traces/demo-decode
PYTEST_ARGS ?=
KILLS_ARGS ?=
VLLM_VENV ?= .venv-vllm

.PHONY: help demo test vllm engines conformance kills lint types bench clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/light.stamp ## which wall? an H200's committed run, then a run of this machine
	@VENV="$(VENV)" MAKE="$(MAKE)" sh scripts/demo.sh "$(DEMO_RUN)" "$(DEMO_OUT)"

test: $(VENV)/dev.stamp ## run all tests, after installing what they need
	@sh scripts/chromium.sh
	$(BIN)/python -m pytest $(PYTEST_ARGS)

vllm: ## put vLLM for a CPU into an environment of its own, for the tests of that engine
	@PYTHON="$(PYTHON)" sh scripts/vllm.sh "$(VLLM_VENV)"

engines: $(VENV)/dev.stamp ## run a real vLLM on this CPU, in process and as a server; skipped where it cannot be
	-@$(MAKE) --no-print-directory vllm
	VLLM_VENV="$(abspath $(VLLM_VENV))" $(BIN)/python -m pytest tests/test_vllm_engine.py tests/test_endpoint_vllm.py

conformance: $(VENV)/dev.stamp ## hold every given trace and fault case against its stated numbers
	$(BIN)/python -m tests.conformance

kills: $(VENV)/dev.stamp ## kill 50 imports at random moments: each leaves no run or a whole one
	$(BIN)/python -m tests.killing $(KILLS_ARGS)

lint: $(VENV)/dev.stamp ## check style, format and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/dev.stamp ## check types
	$(BIN)/mypy

bench: $(VENV)/dev.stamp ## time whichwall itself
	set -e; for file in benchmarks/*.py; do $(BIN)/python "$$file"; done

clean: ## remove environments and every cache; runs stay
	rm -rf $(VENV) $(VLLM_VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

$(BIN)/pip:
	@PYTHON="$(PYTHON)" sh scripts/venv.sh "$(VENV)"

$(VENV)/light.stamp: constraints.txt pyproject.toml | $(BIN)/pip
	@echo "Installing what analyzing needs (0.5 GB on disk)"
	$(PIP_INSTALL) --quiet --editable .
	@touch $@

$(VENV)/collect.stamp: constraints.txt pyproject.toml | $(BIN)/pip
	@echo "Installing what collecting needs: torch and transformers (1 GB on disk; several with CUDA)"
	$(PIP_INSTALL) --quiet --editable '.[collect]'
	@touch $@ $(VENV)/light.stamp

$(VENV)/dev.stamp: constraints.txt pyproject.toml | $(BIN)/pip
	@echo "Installing what the tests need, torch and transformers included (2 GB on disk; more with CUDA)"
	$(PIP_INSTALL) --editable '.[collect,dev]'
	@touch $@ $(VENV)/collect.stamp $(VENV)/light.stamp
