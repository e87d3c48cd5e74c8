# One command each: `make install`, `make demo`, `make test`. Everything lands in .venv, with locked versions.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
UV := $(VENV)/bin/uv
RUN := $(UV) run --no-sync
PYTEST_WORKERS ?= auto
ENGINES_VENV := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/ark/engines
ENGINES := vllm sglang lmcache nixl-cu12 mooncake-transfer-engine-non-cuda ai-dynamo

.PHONY: help install lint types test test-long test-rdma test-contracts test-engines demo docs clean

help:            ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 18

install: $(VENV)/.installed  ## Make .venv with all locked versions

$(VENV)/.installed: pyproject.toml uv.lock install.sh hatch_build.py $(wildcard src/ark/integrations/preload/*.[chmp]*)
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

test-long: install  ## 10,000 random fault schedules, a million fuzzed datagrams, 100,000 fuzzed requests: ten minutes of CPU time
	ARK_SCHEDULES=10000 ARK_DATAGRAMS=1000000 ARK_FUZZ_REQUESTS=100000 \
	  $(RUN) pytest -n $(PYTEST_WORKERS) tests/cluster tests/control/test_fuzz.py tests/agent/test_local_api.py

test-rdma: install  ## RoCE queue pairs on soft RoCE in a virtual machine (QEMU): about two minutes
	@sh tests/rdma/packages.sh || echo "test-rdma: going on; what cannot be had is skipped with its reason"
	ARK_TEST_RDMA=1 $(RUN) pytest -s tests/rdma

test-contracts: install  ## The adapters against the newest vLLM, SGLang, LMCache, NIXL, Mooncake and Dynamo: wheels, 500 MB
	@for engine in $(ENGINES); do \
	  $(PYTHON) -m pip download -q --no-deps --only-binary :all: -d $(VENV)/wheels $$engine || echo "no wheel of $$engine"; \
	done
	ARK_WHEELS=$(VENV)/wheels $(RUN) pytest -q tests/contracts

test-engines: install  ## Unmodified Mooncake and NIXL (from PyPI, 115 MB, once) under ark run, in namespaces; needs root
	$(UV) venv --quiet --allow-existing --python $(VENV)/bin/python $(ENGINES_VENV)
	$(UV) pip install --quiet --python $(ENGINES_VENV)/bin/python --no-deps \
	  -r tests/integrations/preload/engines/requirements.txt
	ARK_ENGINES=$(ENGINES_VENV)/bin/python $(RUN) pytest tests/integrations/preload/test_engines.py

demo: install    ## The paper's experiment and a Mooncake-like workload: result tables and reports in demo-out
	$(RUN) ark reproduce --quick --out demo-out/paper
	$(RUN) ark simulate --trace mooncake-conversation --qps 5,15,25 --schemes ecmp,ark-paper,ark,ideal --seeds 5 \
	  --out demo-out/mooncake
	@echo "Open demo-out/paper/report.html and demo-out/mooncake/report.html in a browser."

docs: install    ## The documentation as HTML, in docs/_build/html
	$(UV) sync --locked --all-extras --group docs --inexact --quiet
	$(RUN) sphinx-build -W --keep-going -q -b html docs docs/_build/html

clean:           ## Remove what make made
	rm -rf $(VENV) build src/ark/integrations/preload/*.so demo-out docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis
