# make demo   a broker through a power cut, with a verdict and a report, in two minutes
# make test   every check and every test, on a fresh machine too

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint docs lock clean

demo: $(VENV)/ready
	$(BIN)/ackworth run reboot

test: $(VENV)/ready-dev lint
	$(BIN)/pytest

lint: $(VENV)/ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy src brook/src
	$(BIN)/lint-imports

# The reference pages are made from the code; a test compares them.
docs: $(VENV)/ready-dev
	$(BIN)/python -m tools.reference

# Pinned versions with hashes, and no address of an index.
lock:
	tools/lock

clean:
	rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/ready: requirements.txt requirements-build.txt tools/setup
	PYTHON=$(PYTHON) tools/setup run
	@touch $@

$(VENV)/ready-dev: requirements-dev.txt requirements-build.txt tools/setup
	PYTHON=$(PYTHON) tools/setup dev
	@touch $@ $(VENV)/ready
