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
	@$(BIN)/python -m advmdp.cli.warm
	@touch $@

demo: $(READY)
	$(BIN)/advmdp demo

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# make test FAST=1 leaves out the tests that take more than about five seconds each.
test: check
	$(BIN)/pytest -q -n auto --dist loadgroup --durations=5 $(if $(FAST),-m "not slow")

bench: $(READY) .venv-peers/ready
	$(BIN)/python -m benchmarks

# Learners of others, to measure beside ours; each in an environment of its own, since they need different rlberrys.
# Without their dependencies, but for those they import: the others include one that accepts a licence for Atari games.
PEER_PIP := -m pip install --quiet --disable-pip-version-check
.venv-peers/ready: constraints.txt
	@echo "Installing learners of others into .venv-peers, about 1 GB."
	$(PYTHON) -m venv .venv-peers/rlberry
	.venv-peers/rlberry/bin/python $(PEER_PIP) dill docopt 'gymnasium<1' matplotlib numba numpy pandas pyyaml scipy seaborn tqdm
	.venv-peers/rlberry/bin/python $(PEER_PIP) --no-deps rlberry==0.6.0
	$(PYTHON) -m venv .venv-peers/scool
	.venv-peers/scool/bin/python $(PEER_PIP) adastop dill 'gymnasium<1' matplotlib numpy pandas scipy tqdm
	.venv-peers/scool/bin/python $(PEER_PIP) --no-deps rlberry==0.7.3 rlberry-scool==0.7.3
	@touch $@

# The report as a reader sees it, in a browser that asks the network nothing.
CHROMIUM := chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --hide-scrollbars \
	--disable-background-networking --disable-component-update --disable-sync --user-data-dir=/tmp/advmdp-chromium
figures: $(READY)
	$(BIN)/advmdp demo --out advmdp-demo
	cp advmdp-demo/flow.png docs/figures/flow.png
	$(CHROMIUM) --window-size=1366,1500 --screenshot=docs/figures/report.png file://$(CURDIR)/advmdp-demo/report.html
	$(BIN)/python examples/compare_learners.py --out docs/figures/learners.png

clean:
	rm -rf $(VENV) .venv-peers .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests benchmarks -name __pycache__ -prune -exec rm -rf {} +
