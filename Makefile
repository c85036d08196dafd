# Each target makes the environment it needs; what `make install` does is in scripts/setup.
BIN := .venv/bin
# Spark starts the Java that JAVA_HOME names, whatever is first on the path.
SPARK := JAVA_HOME="$$(scripts/find-java)"
# Hundreds of processes start here, and import the same: that is compiled once, whatever was set.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: install demo test test-all test-fast chaos bench check

install:
	@scripts/setup

# ARGS="--keep" leaves the service up. WAREHOUSE=s3 puts the table on an S3 server of its own.
demo: install
	@$(SPARK) $(BIN)/python -m demo $(if $(WAREHOUSE),--warehouse $(WAREHOUSE)) $(if $(ENGINE),--engine $(ENGINE)) $(ARGS)

# Workers take a file each (tests/scheduling.py); there are more than cores, because tests wait. What
# fails is run once more (tests/suite.py). ARGS="tests/protocol -x" runs a part.
WORKERS := 3
SUITE := $(SPARK) $(BIN)/python -m tests.suite --numprocesses=$(WORKERS) --dist=loadfile
# Hostile tenants are measured, which `make chaos` does.
MEASURED := tests/service/tenants
# What each change has to pass (tests/selection.py).
test: install
	$(SUITE) --short --worlds 500 --hypothesis-profile=short --timeout 240 $(ARGS)

# Every test but those: none compares durations.
test-all: install
	$(SUITE) --vectors twice --ignore=$(MEASURED) $(ARGS)

# What one runs at each change: the rules, the client, and the core on ports in memory. No Spark.
FAST := tests/protocol tests/client tests/simulation/on_memory tests/service/commit/queue
test-fast: install
	$(BIN)/pytest -q --numprocesses=2 --dist=loadfile $(FAST) $(ARGS)

# Faults under load, judged (docs/faults.md), then what searches by itself, one line each: the state
# machine of the service, Delta's own conflict checker, hostile tenants, requests made out of the
# OpenAPI document, all conflict vectors over HTTP, random logs, the models of the commit points, an
# hour of simulated worlds (docs/development.md), before a release the fuzzer, and Spark beside
# generated predicates. FULL=1 takes the sizes of before a release (docs/reliability.md): hours.
# ARGS="--quick" takes a minute, ARGS="--only k1" a part; with ARGS the lines after the first are left
# out.
MACHINE := $(if $(FULL),10000x100,300x50)
SIMULATION_S := 3600
RANDOM_LOGS := $(addprefix tests/service/upkeep/,checkpoints/test_checkpoints_random.py test_compaction_read.py)
SEARCHING = $(if $(ARGS),@:,$(SPARK) $(BIN)/pytest -q -s)
chaos: install
	@$(BIN)/python -m tests.chaos$(if $(FULL), --release) $(ARGS)
	$(SEARCHING) tests/service/machine --machine $(MACHINE)
	$(SEARCHING) tests/interop/test_conflict_checker.py --schedules 300
	$(SEARCHING) $(MEASURED)
	$(SEARCHING) tests/service/api/routes/test_schemathesis.py --requests 25
	$(SEARCHING) tests/service/api/routes/test_vectors_http.py --http-vectors all
	$(SEARCHING) $(RANDOM_LOGS) --hypothesis-profile=long
	$(if $(ARGS),,@$(BIN)/python -m tests.model)
	$(if $(ARGS),,@$(BIN)/python -m tests.simulation --seconds $(SIMULATION_S))
	$(if $(FULL),$(SEARCHING) tests/fuzzing --fuzzing-seconds 1200)
	$(SEARCHING) tests/spark/predicates/test_generated.py --predicates $(if $(FULL),200000,10000)

# Ratios, measured side by side, and benchmarks/report.md (benchmarks/README.md).
# ARGS="--quick" takes five minutes and writes .bench/report.md, ARGS="--only b1,b3" a part.
bench: install
	@$(SPARK) $(BIN)/python -m benchmarks $(ARGS)

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
