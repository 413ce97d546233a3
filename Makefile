# `make demo` and `make test` need Python 3.11 or newer, a C++ compiler and the package index, and do all set-up themselves.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
NATIVE := $(wildcard cpp_chnsw/CMakeLists.txt cpp_chnsw/src/* cpp_chnsw/include/chnsw/*)

.PHONY: demo test test-sanitize lint types contracts check clean

demo: $(VENV)/.demo
	$(BIN)/graphrag-bench run experiment=demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2

# The C++ core without Python under AddressSanitizer and UndefinedBehaviorSanitizer, then under ThreadSanitizer; only a C++
# compiler and CMake are needed.
test-sanitize:
	cmake -S cpp_chnsw/tests -B build/sanitize-address -DCHNSW_SANITIZE=address,undefined
	cmake --build build/sanitize-address
	ctest --test-dir build/sanitize-address --output-on-failure
	cmake -S cpp_chnsw/tests -B build/sanitize-thread -DCHNSW_SANITIZE=thread
	cmake --build build/sanitize-thread
	ctest --test-dir build/sanitize-thread --output-on-failure

lint: $(VENV)/.dev
	$(BIN)/ruff check .

types: $(VENV)/.dev
	$(BIN)/mypy

contracts: $(VENV)/.dev
	$(BIN)/lint-imports

check: lint types contracts test

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.demo: pyproject.toml $(NATIVE) | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet -e '.[embedded]'
	touch $@

$(VENV)/.dev: pyproject.toml $(NATIVE) | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet -e '.[embedded,dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .hypothesis .import_linter_cache
