# Every target works from a clean checkout with Python 3.11+, a C++ compiler and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
KERNELS := editor_engine/kernels
NATIVE := $(wildcard $(foreach end,cpp h,$(KERNELS)/*.$(end) $(KERNELS)/*/*.$(end))) $(KERNELS)/CMakeLists.txt
DEMO_FILE := examples/stockroom.py
DEMO_INSTRUCTION ?= In ship() and reserve(), refuse a count of zero or less with a ValueError
BENCH_MODEL ?= qwen2.5-coder-1.5b
REPEATS ?= 3
TASKS ?= $(wildcard ../shared/edit_tasks/dev.jsonl)
export REDRAFT_FROM_INDEX ?= 1

.PHONY: setup demo test check soak bench replay screenshots snapshots ci-deps clean

setup: $(STAMP)  ## make .venv and install Redraft with everything tests need

$(STAMP): pyproject.toml constraints.txt $(NATIVE)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=24"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt "scikit-build-core>=1.1,<2" "nanobind>=3.1,<4" cmake ninja
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable ".[hf,dev,bench]"
	touch $(STAMP)

demo: setup  ## pull the model chosen for this machine and edit a file under examples/
	$(BIN)/redraft models pull
	$(BIN)/redraft edit $(DEMO_FILE) --instruction "$(DEMO_INSTRUCTION)" </dev/null

test: setup  ## fetch the small models, then run every test but the slow ones
	$(BIN)/redraft models pull smollm2-135m
	$(BIN)/redraft models pull qwen2.5-coder-0.5b
	$(BIN)/python -m pytest -m "not slow"

check: setup  ## lint, format, types, direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

soak: setup  ## full counts of the heavy tests, and the 1.5B model
	$(BIN)/redraft models pull smollm2-135m
	$(BIN)/redraft models pull qwen2.5-coder-0.5b
	$(BIN)/redraft models pull qwen2.5-coder-1.5b
	REDRAFT_SOAK=1 $(BIN)/python -m pytest --timeout=3600 --durations=20

bench: setup  ## every speed figure of BENCH_MODEL against llama.cpp (long; REPEATS=1 for a look)
	$(BIN)/redraft models pull $(BENCH_MODEL)
	$(BIN)/redraft bench prefill --model $(BENCH_MODEL) --repeats $(REPEATS)
	$(BIN)/redraft bench plain --model $(BENCH_MODEL) --repeats $(REPEATS)
	$(BIN)/redraft bench plain --passes --model $(BENCH_MODEL) --repeats $(REPEATS)
	$(BIN)/redraft bench peers --model $(BENCH_MODEL) --repeats $(REPEATS)
	$(BIN)/redraft bench edit --model $(BENCH_MODEL) --repeats $(REPEATS)
	$(if $(TASKS),$(BIN)/redraft bench edit --model $(BENCH_MODEL) --repeats $(REPEATS) --tasks $(TASKS) --turns 4)

replay: setup  ## drafters over edits with a known result, without running a model
	$(if $(TASKS),,$(error No tasks to replay: `make replay TASKS=file.jsonl` names them))
	$(BIN)/redraft models pull qwen2.5-coder-0.5b
	$(BIN)/redraft bench replay --model qwen2.5-coder-0.5b --tasks $(TASKS)

screenshots: setup  ## make the pictures of README anew, from a scripted engine
	$(BIN)/python -m tests.support.screenshots

snapshots: setup  ## make the pictures that tests compare with anew; look at each that changed
	UPDATE_SNAPSHOTS=1 $(BIN)/python -m pytest -q tests/app/tui/test_snapshots.py
	git status --short tests/app/tui/snapshots

ci-deps:  ## system packages that tests of the outside need (Debian; run as root)
	apt-get update -qq
	apt-get install -y -qq --no-install-recommends attr g++ g++-aarch64-linux-gnu git make patch qemu-user tmux

clean:
	rm -rf $(VENV) build dist
