# Everything a newcomer and CI run. Nothing needs to be installed but Python 3.11 or newer, make and git.
.DEFAULT_GOAL := help
SHELL := /bin/sh
PYTHON ?= python3
BIN := .venv/bin
EXAMPLE := .
# One below what was measured; raise it with that.
COVERAGE_FLOOR := 97

.PHONY: help demo test coverage test-lowest test-cluster proof test-trace test-orders test-gpu mutants check generate docs docs-serve bench dist sbom lock clean

help: ## Show what can be made
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

demo: $(BIN)/.run ## Validate and build the example platform
	@echo "== gpuplan validate: is the platform in policies/ and overlays/ right?"
	@$(BIN)/gpuplan validate
	@echo "== gpuplan build: compile it into out/"
	@$(BIN)/gpuplan build --output-format concise >/dev/null
	@echo "== gpuplan show --summary: what each cluster hands out"
	@$(BIN)/gpuplan show --summary
	@echo "== Next: look at out/dev/; in policies/layouts.yaml add \`1g.10gb: 1\` below \`3g.40gb: 2\`, then run .venv/bin/gpuplan validate"

test: $(BIN)/.dev ## Run all tests
	@$(BIN)/python -m pytest -n auto -q

coverage: $(BIN)/.dev ## Run all tests, and fail where fewer of the lines of gpuplan are run than COVERAGE_FLOOR percent
	@$(BIN)/python -m pytest -n auto -q --cov --cov-report= --cov-fail-under=$(COVERAGE_FLOOR)

test-lowest: build/lowest/.done ## Run every command with the lowest versions of packages that pyproject.toml allows
	@build/lowest/bin/python tools/try_commands.py

test-cluster: $(BIN)/.dev ## Run the tests on a real control plane and the real parsers; builds these with Go
	@$(BIN)/python -m tests.cluster.programs
	@GPUPLAN_TEST_CLUSTER=1 GPUPLAN_CRDS="$${GPUPLAN_CRDS:-$(abspath $(wildcard ../shared/crds))}" $(BIN)/python -m pytest -q tests/cluster $(CLUSTER_ARGS)

proof: $(BIN)/.dev ## Run what takes too long for test-cluster, and write what came of it to docs/proof/
	@$(BIN)/python -m tests.cluster.programs
	@GPUPLAN_TEST_CLUSTER=1 GPUPLAN_TEST_PROOF=1 GPUPLAN_CRDS="$${GPUPLAN_CRDS:-$(abspath $(wildcard ../shared/crds))}" $(BIN)/python -m pytest -q tests/cluster/test_argocd_changes.py tests/cluster/test_tenants.py tests/cluster/test_class_at_limit.py tests/cluster/test_first_sync.py tests/cluster/test_gangs.py tests/cluster/test_operator.py tests/cluster/test_reclaim_kueue.py tests/cluster/test_reclaim_kai.py tests/cluster/test_strictly.py tests/features/live/test_round_trip.py tests/features/live/test_fuzz.py tests/features/packing/sizing/test_optimum.py tests/features/packing/sizing/test_any_size.py tests/laws/packing tests/laws/doors/test_commands.py

test-trace: $(BIN)/.dev ## Change every value of the example: something changes with it, and what does traces to it
	@GPUPLAN_TEST_TRACE=1 $(BIN)/python -m pytest -n 0 -q tests/laws/tracing/test_traces.py tests/laws/acting

test-orders: $(BIN)/.dev ## Judge 2,000 steps by chance in every order of syncs, and hold what diff and validate say of them
	@GPUPLAN_TEST_ORDERS=1 $(BIN)/python -m pytest -n 0 -q tests/laws/orders tests/laws/steps

test-gpu: $(BIN)/.dev ## Compare the NVIDIA GPUs of this machine with the catalog; changes no setting
	@GPUPLAN_TEST_GPU=1 $(BIN)/python -m pytest -n 0 -q -rs tests/gpu

mutants: $(BIN)/.dev ## Break the code 200 times and print what no test sees: MUTANTS="--seed 2 --packages compiler/checks/mig.py"
	@$(BIN)/python tools/mutants.py $(MUTANTS)

check: $(BIN)/.dev ## Lint, types, layers, and that generated files are current
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/count.py --budget tools/budget.toml
	$(BIN)/python tools/words.py --budget tools/budget.toml
	$(BIN)/python tools/prose.py --check
	$(BIN)/python tools/generate.py --check
	$(BIN)/gpuplan validate -q
	$(BIN)/gpuplan build --check -q

generate: $(BIN)/.dev ## Write everything that is generated from code: docs, schemas, out/
	$(BIN)/python tools/generate.py
	$(BIN)/ruff format .
	$(BIN)/gpuplan build

docs: $(BIN)/.docs ## Build the documentation's site into build/site/; a link that leads nowhere fails it
	$(BIN)/zensical build --strict --clean

docs-serve: $(BIN)/.docs ## Show the documentation's site on localhost and follow changes
	$(BIN)/zensical serve

bench: $(BIN)/.bench ## Measure build, check and validate against a floor and a peer, and pack against a published scheduler
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.parvagpu

dist: $(BIN)/.dist ## Build the wheel and the sdist into dist/, and read them as a package index would
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/twine check --strict dist/*

sbom: $(BIN)/.dist ## Write a CycloneDX bill of the locked packages into build/
	rm -rf build/sbom
	$(BIN)/python -m venv --without-pip build/sbom
	$(BIN)/python -m pip --python build/sbom/bin/python install -q --disable-pip-version-check --require-hashes -r requirements/run.txt
	sed "s/^dynamic = \[\"version\"\]/version = \"$$($(BIN)/hatchling version)\"/" pyproject.toml > build/sbom/pyproject.toml
	$(BIN)/cyclonedx-py environment --output-reproducible --pyproject build/sbom/pyproject.toml build/sbom/bin/python -o build/gpuplan.cdx.json

lock: $(BIN)/.dev ## Resolve the versions in requirements/ to the newest
	$(BIN)/python -m pip install -q uv
	$(BIN)/uv pip compile -q --no-strip-extras --universal --python-version 3.11 --generate-hashes --custom-compile-command "make lock" pyproject.toml requirements/build.in -o requirements/run.txt
	$(BIN)/uv pip compile -q --no-strip-extras --universal --python-version 3.11 --generate-hashes --custom-compile-command "make lock" --extra dev -c requirements/run.txt pyproject.toml requirements/build.in -o requirements/dev.txt
	$(BIN)/uv pip compile -q --no-strip-extras --universal --python-version 3.11 --generate-hashes --custom-compile-command "make lock" --extra dev --extra bench -c requirements/dev.txt pyproject.toml requirements/build.in -o requirements/bench.txt
	$(BIN)/uv pip compile -q --no-strip-extras --universal --python-version 3.11 --generate-hashes --custom-compile-command "make lock" --extra dev --extra docs -c requirements/dev.txt pyproject.toml requirements/build.in -o requirements/docs.txt
	$(BIN)/uv pip compile -q --no-strip-extras --universal --python-version 3.11 --generate-hashes --custom-compile-command "make lock" --extra dev --extra dist -c requirements/dev.txt pyproject.toml requirements/build.in -o requirements/dist.txt

clean: ## Remove the virtual environment and caches
	rm -rf .venv .tools .cache build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

# Each stamp stands for one set of locked packages; a larger set serves the smaller ones too.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed: make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -m venv .venv || { rm -rf .venv; exit 1; }

$(BIN)/.run: requirements/run.txt pyproject.toml | $(BIN)/python
	@test -e $(BIN)/.dev || { echo "installing into .venv ..." && \
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/run.txt && \
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e . && \
	$(BIN)/python -m compileall -q gpuplan ; }
	@touch $@

$(BIN)/.dev: requirements/dev.txt pyproject.toml | $(BIN)/python
	@echo "installing into .venv ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q gpuplan
	@touch $@ $(BIN)/.run

$(BIN)/.bench: requirements/bench.txt $(BIN)/.dev
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/bench.txt
	@touch $@

$(BIN)/.docs: requirements/docs.txt $(BIN)/.dev
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/docs.txt
	@touch $@

$(BIN)/.dist: requirements/dist.txt $(BIN)/.dev
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/dist.txt
	@touch $@

build/lowest/.done: pyproject.toml requirements/build.in
	@echo "installing into build/lowest ..."
	@$(PYTHON) -m venv --clear build/lowest
	@build/lowest/bin/python -m pip install -q --disable-pip-version-check uv -r requirements/build.in
	@build/lowest/bin/uv pip install -q --python build/lowest --resolution lowest-direct -r pyproject.toml
	@build/lowest/bin/uv pip install -q --python build/lowest --no-deps --no-build-isolation -e .
	@touch $@
