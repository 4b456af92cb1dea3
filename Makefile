# The commands of this project. `make run` and `make test` are all a newcomer needs.
PYTHON ?= python3
BIN := .venv/bin
.DEFAULT_GOAL := run
.PHONY: run setup test check fuzz soak bench bench-large format messages clean

.venv/.installed: requirements.txt
	$(PYTHON) -c 'import sys; sys.exit("KnowSphere needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --only-binary :all: -r requirements.txt
	touch $@

.venv/.installed-dev: .venv/.installed requirements-dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --only-binary :all: -r requirements-dev.txt
	touch $@

setup: .venv/.installed  ## install, start the database once, migrate
	$(BIN)/python manage.py setup

run: .venv/.installed  ## web and worker on http://127.0.0.1:8000 (PORT), until Ctrl-C
	@exec $(BIN)/python -m knowsphere.supervisor

test: .venv/.installed-dev  ## the whole suite
	$(BIN)/python -m pytest -n auto --dist loadgroup

check: .venv/.installed-dev  ## everything CI runs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/djlint templates --lint --quiet
	$(BIN)/python manage.py makemigrations --check --dry-run
	$(BIN)/python -m pytest -n auto --dist loadgroup --reruns 1 -rR --durations 15 --cov --cov-report=term:skip-covered

fuzz: .venv/.installed-dev  ## 10,000 random worlds of rights against the plain rules (RIGHTS_SEED moves on), 1,000 broken sockets
	RIGHTS_DRAWS=10000 $(BIN)/python -m pytest -n auto --timeout 3600 tests/rights/test_property.py
	DISCONNECTS=1000 $(BIN)/python -m pytest -n 0 tests/conversations/live/test_disconnects.py

soak: .venv/.installed-dev  ## 200 files taken in while worker, web and database are killed at random (SOAK_SEED)
	SOAK_FILES=200 $(BIN)/python -m pytest -n 0 -s tests/platform/test_soak.py

bench: .venv/.installed-dev  ## measured ratios against floors and peers of the same run
	$(BIN)/python -m benchmarks

bench-large: .venv/.installed-dev  ## search among a million chunks: half an hour, 10 GB of disk
	KNOWSPHERE_HOME=var/bench $(BIN)/python manage.py setup
	KNOWSPHERE_HOME=var/bench $(BIN)/python -m benchmarks.large_search

format: .venv/.installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

messages: .venv/.installed-dev  ## collect and compile translations (needs gettext)
	$(BIN)/python manage.py makemessages --all --no-location --no-wrap --ignore .venv --ignore var
	$(BIN)/python manage.py compilemessages --ignore .venv

clean:  ## forget the virtual environment; data in var/ stays
	rm -rf .venv
