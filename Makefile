# Each target makes the environment it needs; what `make install` does is in scripts/setup.
BIN := .venv/bin
# Spark starts the Java that JAVA_HOME names, whatever is first on the path.
SPARK := JAVA_HOME="$$(scripts/find-java)"

.PHONY: install demo test check

install:
	@scripts/setup

# ARGS="--keep" leaves the service up.
demo: install
	@$(SPARK) $(BIN)/python -m demo $(ARGS)

# ARGS="tests/protocol -x" runs a part.
test: install
	$(SPARK) $(BIN)/pytest --durations=20 --durations-min=1 $(ARGS)

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
