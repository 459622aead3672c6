# Everything sets itself up: a fresh machine needs Python 3.11 or later, pip and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready

.PHONY: demo test check setup bench figures clean
.DEFAULT_GOAL := demo

setup: $(READY)

# The stamp is written last, so a set-up that was interrupted is made again.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version.split()[0]; sys.exit(sys.version_info < (3, 11) and f"advmdp needs Python 3.11 or later; this is {v}: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV), about 1 GB: a minute or more."
	PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@echo "Compiling the kernels: two or three minutes, once."
	@$(BIN)/python -m advmdp.warm
	@touch $@

demo: $(READY)
	$(BIN)/advmdp demo

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: check
	$(BIN)/pytest -q -n auto --durations=5

bench: $(READY)
	$(BIN)/python -m benchmarks

# Without its dependencies, but for those it imports: the others include one that accepts a licence for Atari games.
.venv-peers/ready: constraints.txt
	$(PYTHON) -m venv .venv-peers
	PIP_CONSTRAINT=$(CURDIR)/constraints.txt .venv-peers/bin/python -m pip install --quiet --disable-pip-version-check \
		adastop dill 'gymnasium<1' matplotlib numpy pandas scipy tqdm
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check --no-deps rlberry==0.7.3 rlberry-scool==0.7.3
	@touch $@

figures: $(READY)
	$(BIN)/advmdp demo --out docs/figures
	$(BIN)/python examples/compare_learners.py --out docs/figures/learners.png

clean:
	rm -rf $(VENV) .venv-peers .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests benchmarks -name __pycache__ -prune -exec rm -rf {} +
