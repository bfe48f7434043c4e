# Every command of the project. `make` alone lists them; the lines with two number signs are the help.
# PYTHON names the interpreter that the environment is made with: make setup PYTHON=python3.13

PYTHON ?= python3
SEED ?= 0
PY := .venv/bin/python
UV := $(PY) -m uv
READY := .venv/.ready
LOCK = $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--custom-compile-command "make lock"
CRD := crds/kvfence.io_inferencepools.yaml
API_TESTS := e2e/api e2e/kube e2e/chart
STAGE_TESTS := e2e/lifecycle e2e/stage e2e/engines e2e/incident e2e/by_hand e2e/door e2e/integrity e2e/model e2e/front e2e/product e2e/pools e2e/demo

export UV_PYTHON_DOWNLOADS := never
# A network's own certificate authority is known to the system, not to uv; where Debian's list is there, uv reads it.
ifneq ($(wildcard /etc/ssl/certs/ca-certificates.crt),)
export UV_SYSTEM_CERTS ?= true
endif
unexport VIRTUAL_ENV PYTHONHOME PYTHONPATH

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup lint unit fuzz api cluster test images red demo demo-down model engine-stage engine-soak bench-engine incident stage-build stage-up stage-down stage-status generate lock format clean

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## Make .venv with the locked tools; every other command does this first when it is needed

lint: setup ## Level 1: style, types, import rules, lock (no test runs)
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy operator engine_image e2e tests bench
	$(PY) -m mypy --python-version 3.10 engine_image
	$(PY) .venv/bin/lint-imports --no-logo
	@echo "requirements-dev.lock, and what is installed from it, against pyproject.toml"
	@$(UV) pip install --quiet --dry-run --offline --no-cache -r pyproject.toml --extra dev --extra operator \
		|| { echo 'requirements-dev.lock does not fit pyproject.toml any more: run "make lock"' >&2; exit 1; }

unit: setup ## Level 2: the fast tests, in seconds
	$(PY) -m pytest tests

fuzz: setup ## Change the field's logs N times at random: none may be read wrong; SEED=n: the first seed
	$(PY) -m tests.fuzz $(or $(N),100000) --seed $(SEED)

api: setup ## Level 3: tests against a real Kubernetes API without nodes
	$(PY) -m e2e.cluster build
	$(PY) -m pytest $(API_TESTS)

cluster: stage-build ## Level 4: tests against the whole stage, with real SGLang
	$(PY) -m pytest $(STAGE_TESTS)

test: lint stage-build ## All levels, as CI runs them
	$(PY) -m pytest tests $(API_TESTS) $(STAGE_TESTS)

images: setup ## Build the images that users get from their Dockerfiles, and run each once; not part of test
	$(PY) -m pytest e2e/images

red: setup ## Take each defence out of a copy of the code: a test must go red; ARGS=--stage for those on the stage
	$(PY) -m e2e.red $(ARGS)

# With CONTEXT no stage is started; `python -m e2e.demo --help` says what else such a cluster needs.
demo: setup ## Show a pool being measured, capped, proven and admitted, on the stage; CONTEXT=name: on that cluster
	$(PY) -m e2e.demo $(if $(CONTEXT),--context '$(CONTEXT)')

demo-down: setup ## Remove what make demo left, the stage too; CONTEXT=name: what it made on that cluster
	$(PY) -m e2e.demo --down $(if $(CONTEXT),--context '$(CONTEXT)')

model: setup ## Check the formal model of page tags: no leak with all defences, one without each
	$(PY) -m e2e.model $(ARGS)

engine-stage: stage-build ## N users, ordinary and hostile, on a real pair with all defences and on one without
	$(PY) -m e2e.integrity $(or $(N),300)

engine-soak: stage-build ## Clean load on a real pair with all defences for MINUTES=60: nothing may be found
	$(PY) -m e2e.integrity.soak --minutes $(or $(MINUTES),60)

bench-engine: setup ## What page tags cost a decode step and a prompt, as ratios and plots into bench/results/
	$(PY) -m bench.engine

incident: setup ## Show the incident that this project exists for, on the stage
	$(PY) -m e2e.incident

stage-build: setup ## Build what the stage is made of; does nothing when it is there
	$(PY) -m e2e.cluster build
	$(PY) -m e2e.engines
	$(PY) -m e2e.product
	$(PY) -m e2e.by_hand build

stage-up: setup ## Bring the stage up and leave it running
	$(PY) -m e2e.cluster up

stage-down: setup ## Take the stage down and leave nothing behind
	$(PY) -m e2e.cluster down

stage-status: setup ## Say what of the stage is running
	$(PY) -m e2e.cluster status

generate: setup ## Write crds/, the chart's copy and docs/reference anew from operator/kvfence/{api,catalogue}
	$(PY) -m kvfence.api >$(CRD).new || { rm -f $(CRD).new; exit 1; }
	@mv $(CRD).new $(CRD)
	@cp $(CRD) charts/kvfence/files/
	$(PY) -m kvfence.api words >docs/reference/conditions.md
	$(PY) -m kvfence.catalogue reference >docs/reference/advisories.md

lock: setup ## Rewrite the locks of development, operator and router; newest versions with ARGS=--upgrade
	$(LOCK) $(ARGS) --extra dev --extra operator --output-file requirements-dev.lock pyproject.toml
	$(LOCK) --extra operator --constraint requirements-dev.lock --output-file requirements.lock pyproject.toml
	$(LOCK) $(ARGS) --output-file operator/router-requirements.txt operator/router-requirements.in

format: setup ## Write the code as `make lint` wants it, as far as a program can
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

clean: ## Remove .venv and the caches of the tools; what the stage has built stays
	rm -rf .venv .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache engine_image/.ruff_cache
	rm -rf dist engine_image/dist
	find operator engine_image e2e tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment: made once, brought up to date when one of these files changes, or when the checkout was moved or
# copied with it (the stamp holds the folder: the packages of the checkout are installed by their path).
ifneq ($(shell cat $(READY) 2>/dev/null),$(CURDIR))
.PHONY: $(READY)
endif
$(READY): requirements-dev.lock pyproject.toml engine_image/pyproject.toml \
		operator/kvfence/__init__.py engine_image/kvfence_engine/__init__.py
	@command -v $(PYTHON) >/dev/null || { echo 'There is no $(PYTHON) here. Install Python 3.11 or newer' \
		'(Debian: apt-get install python3 python3-venv), or name yours: make setup PYTHON=...' >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is $$($(PYTHON) --version 2>&1)," \
		'and kvfence needs 3.11 or newer. Name a newer one: make setup PYTHON=python3.11' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo '$(PYTHON) cannot make virtual environments.' \
		'Debian keeps that part apart: apt-get install python3-venv' >&2; exit 1; }
	@echo 'Making the environment in .venv from requirements-dev.lock (under a minute the first time)'
	$(PYTHON) -m venv .venv
	@echo 'uv, as locked'
	@sed -n '/^uv==/,/[^\\]$$/p' requirements-dev.lock \
		| $(PY) -m pip --disable-pip-version-check --quiet install --no-deps --require-hashes -r /dev/stdin
	$(UV) pip sync --python $(PY) --require-hashes requirements-dev.lock
	$(UV) pip install --python $(PY) --no-deps --no-build-isolation --editable . --editable engine_image
	@echo '$(CURDIR)' >$@
