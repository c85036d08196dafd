# Each target makes the environment it needs; what `make install` does is in scripts/setup.
BIN := .venv/bin
# Spark starts the Java that JAVA_HOME names, whatever is first on the path.
SPARK := JAVA_HOME="$$(scripts/find-java)"

.PHONY: install demo test chaos bench check

install:
	@scripts/setup

# ARGS="--keep" leaves the service up. WAREHOUSE=s3 puts the table on an S3 server of its own.
demo: install
	@$(SPARK) $(BIN)/python -m demo $(if $(WAREHOUSE),--warehouse $(WAREHOUSE)) $(ARGS)

# ARGS="tests/protocol -x" runs a part.
test: install
	$(SPARK) $(BIN)/pytest --durations=20 --durations-min=1 $(ARGS)

# Faults under load, judged (docs/faults.md), then the state machine of the service at length
# (docs/development.md). ARGS="--quick" takes a minute, ARGS="--only k1" a part.
MACHINE := 300x50
chaos: install
	@$(BIN)/python -m tests.chaos $(ARGS)
	$(if $(ARGS),,@$(BIN)/pytest -q -s tests/service/machine --machine $(MACHINE))

# Ratios, measured side by side, and benchmarks/report.md (benchmarks/README.md).
# ARGS="--quick" takes five minutes and writes .bench/report.md, ARGS="--only b1,b3" a part.
bench: install
	@$(SPARK) $(BIN)/python -m benchmarks $(ARGS)

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
