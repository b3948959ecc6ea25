PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3.14 python3 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help

.PHONY: help
help:  ## Print what can be done
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# One environment from one lock file; made again when the lock or the packages' metadata change.
$(READY): requirements.lock setup.cfg pyproject.toml sdk/setup.cfg
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed (none found on the PATH)." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { \
		echo "This Python cannot make virtual environments. On Debian or Ubuntu: apt-get install python3-venv" >&2; \
		rm -rf $(VENV); exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . -e sdk
	@touch $(READY)

.PHONY: dev
dev: $(READY)  ## Set up the environment in .venv

.PHONY: run
run: $(READY)  ## Start everything on 127.0.0.1:8080 (options: ARGS="--port 9000")
	@exec $(BIN)/mesedi-server up $(ARGS)

.PHONY: demo
demo: $(READY)  ## Store a set of real evaluator results, for a first look; a second time changes nothing
	@$(BIN)/mesedi-server demo $(ARGS)

.PHONY: test
test: $(READY)  ## Run the tests (they start their own PostgreSQL and broker)
	$(BIN)/python -m pytest -n 2 --dist loadfile $(ARGS)

.PHONY: fast
fast: $(READY)  ## Run the tests that need nothing but Python
	$(BIN)/python -m pytest tests/detectors tests/evaluators tests/sdk $(ARGS)

.PHONY: lint
lint: $(READY)  ## Check format and style
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

.PHONY: format
format: $(READY)  ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: types
types: $(READY)  ## Check the types
	$(BIN)/mypy
	$(BIN)/mypy --python-version 3.10 sdk/mesedi

.PHONY: imports
imports: $(READY)  ## Check that imports go one way
	PYTHONPATH=. $(BIN)/lint-imports

.PHONY: sure
sure: lint types imports test  ## Everything that a change must pass

.PHONY: bench
bench: $(READY)  ## Measure ingest and detection (about two minutes)
	$(BIN)/python -m bench.ingest

.PHONY: bench-assess
bench-assess: $(READY)  ## Measure the assessing of 100,000 failing answers (some minutes)
	$(BIN)/python -m bench.assess $(ARGS)

.PHONY: bench-pages
bench-pages: $(READY)  ## Measure the pages on millions of events (fills a database first: minutes)
	$(BIN)/python -m bench.pages $(ARGS)

.PHONY: screenshots
screenshots: $(READY)  ## Take the pictures of docs/screenshots (needs Chromium)
	$(BIN)/python -m tests.make_screenshots

.PHONY: test-faults
test-faults: $(READY)  ## Kill workers in the middle of examining and assessing, some hundred times (about twenty minutes)
	$(BIN)/python -m pytest -m faults tests/faults $(ARGS)

.PHONY: bench-sdk
bench-sdk: $(READY)  ## Measure what a score costs its caller, beside the published SDK
	$(BIN)/python -m bench.sdk

.PHONY: test-ragas
test-ragas: $(READY)  ## Run emit_ragas on live results of ragas 0.4.3 (installs 900 MB)
	MESEDI_TEST_RAGAS=1 $(BIN)/python -m pytest tests/sdk/test_live_ragas.py $(ARGS)

.PHONY: bench-eval
bench-eval: $(READY)  ## Measure capture and grounding beside alignmenter 0.3.5 (minutes; needs PyPI)
	$(BIN)/python -m bench.evaluators $(ARGS)

.PHONY: bench-judged
bench-judged: $(READY)  ## Measure judged evaluations beside alignmenter 0.3.5 (about ten minutes; needs PyPI)
	$(BIN)/python -m bench.judged $(ARGS)

.PHONY: test-eval-kills
test-eval-kills: $(READY)  ## Kill captures and evaluations a few hundred times (minutes)
	MESEDI_EVAL_KILLS=100 $(BIN)/python -m pytest tests/evaluators/test_kills.py tests/evaluators/test_judge_kills.py $(ARGS)

.PHONY: test-contract
test-contract: $(READY)  ## Run the published SDK mesedi 0.7.0 against a live server
	$(BIN)/python -m pytest -m contract tests/contract $(ARGS)

.PHONY: migration
migration: $(READY)  ## Write a migration from the tables: make migration m="what it does"
	$(BIN)/python -m tests.make_migration "$(m)"

.PHONY: lock
lock:  ## Resolve the dependencies again (needs uv)
	uv pip compile setup.cfg --extra embedded --group pyproject.toml:dev --universal \
		--python-version 3.11 --generate-hashes --no-annotate --no-header -o requirements.lock

.PHONY: dist
dist: $(READY)  ## Build both wheels into dist/
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation -w dist . ./sdk

.PHONY: clean
clean:  ## Remove what the build made (not the data)
	rm -rf $(VENV) build dist *.egg-info sdk/build sdk/*.egg-info
