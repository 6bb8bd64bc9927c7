# Needs make, git and Python 3.11 or newer with venv; everything else goes into .venv.
# Another Python: make demo PYTHON=python3.13

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input -qq
TO_RUN := .[hermes]
TO_TEST := .[dev,hermes]
# pytest's own options, e.g. make test ARGS="-k chain"
ARGS ?=

# As it was typed, dollar signs and quotes included, and through the environment, not a shell.
override PROMPT := $(value PROMPT)
export PROMPT
export KEEP

.DEFAULT_GOAL := help
.PHONY: help demo test test-long bench lint docs clean
.DELETE_ON_ERROR:

help: ## this list
	@echo 'make TARGET, one of:'
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' Makefile | while IFS='|' read -r name what; do \
		printf '  %-9s %s\n' "$$name" "$$what"; done

demo: $(VENV)/installed ## the main job in the real Hermes, shown and checked (PROMPT="…", KEEP=1)
	@$(BIN)/python -m demo.demo

test: $(VENV)/installed-dev ## all tests, those with the real Hermes too (ARGS="…" goes to pytest)
	$(BIN)/python -m pytest -n 3 --dist worksteal $(ARGS)

test-long: $(VENV)/installed-dev ## on the other versions of Hermes that are proven, and the long campaigns
	LONG=1 $(BIN)/python -m pytest -n 3 --dist worksteal tests/effects/oracle/test_oracle.py \
		tests/crash tests/load/test_neighbors.py
	LONG=1 $(BIN)/python -m pytest tests/confine/corpus
	$(BIN)/python -m tests.fuzz.run --seconds 10 --seed 7
	$(BIN)/nox

bench: $(VENV)/installed-dev ## benchmarks; fails where a bar is missed
	$(BIN)/python benchmarks/run.py --check

lint: $(VENV)/installed-dev ## ruff, mypy, the import layers and the docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@# An extension's folder may have a hyphen in its name; a package that mypy reads may not.
	@mkdir -p build/typed && for each in extensions/*/; do \
		name=$$(basename "$$each"); \
		link=build/typed/$$(printf %s "$$name" | tr - _); \
		ln -sfn "../../extensions/$$name" "$$link" && \
		echo "mypy $$each" && $(BIN)/mypy "$$link"/*.py || exit 1; done
	$(BIN)/mypy docs/examples/*/__init__.py
	$(BIN)/lint-imports
	$(MAKE) --no-print-directory docs

docs: $(VENV)/installed-dev ## the documentation as a site, in build/site; fails for a warning
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

clean: ## remove .venv and what the tools leave behind
	rm -rf $(VENV) .nox build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache \
		.hypothesis .benchmarks
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A virtual environment does not survive that its folder is moved or its Python removed.
ifneq ($(shell $(BIN)/python -c 1 2>/dev/null && cat $(VENV)/made 2>/dev/null),$(CURDIR))
$(VENV)/made: FORCE
endif
FORCE:

$(VENV)/made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo 'This needs Python 3.11 or newer, as in: make demo PYTHON=python3.13' >&2; exit 1; }
	@echo 'Making a virtual environment in $(VENV)'
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo 'There is no venv for $(PYTHON); Debian and Ubuntu have it in python3-venv.' >&2; \
		exit 1; }
	@pwd -P > $@

$(VENV)/installed: pyproject.toml $(VENV)/made
	@echo 'Installing hermes-ext and hermes-agent into $(VENV), some 65 packages'
	@$(call with-dots,$(PIP) install -e '$(TO_RUN)')
	@touch $@

$(VENV)/installed-dev: pyproject.toml $(VENV)/installed
	@echo 'Installing what the tests and checks need'
	@$(call with-dots,$(PIP) install -e '$(TO_TEST)')
	@touch $@

# A dot every three seconds, so that a slow command is seen to be at work.
define with-dots
(while sleep 3; do printf .; done) & dots=$$!; $(1); code=$$?; kill $$dots; echo; exit $$code
endef
