# One command each: `make install`, `make demo`, `make test`. Everything lands in .venv, with locked versions.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
UV := $(VENV)/bin/uv
RUN := $(UV) run --no-sync
PYTEST_WORKERS ?= auto

.PHONY: help install lint types test demo clean

help:            ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 18

install: $(VENV)/.installed  ## Make .venv with all locked versions

$(VENV)/.installed: pyproject.toml uv.lock install.sh
	@PYTHON=$(PYTHON) VENV=$(VENV) sh install.sh
	@touch $@

lint: install    ## Format, style and layer checks
	$(RUN) ruff format --check .
	$(RUN) ruff check .
	$(RUN) lint-imports --no-cache

types: install   ## Strict type check
	$(RUN) mypy

test: lint types  ## Lint, types and all tests
	$(RUN) pytest -n $(PYTEST_WORKERS)

clean:           ## Remove what make made
	rm -rf $(VENV) demo-out .pytest_cache .mypy_cache .ruff_cache .hypothesis
