# Two commands matter: `make demo` and `make test`. Both install what a bare Debian or Ubuntu with
# Rust lacks, and build in the one profile there is, so that RocksDB is compiled once.

CARGO ?= cargo
# A build cache outside of the checkout outlives it, and spares the next one RocksDB.
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/tidegate/target
ifneq ($(wildcard $(CACHE)),)
export CARGO_TARGET_DIR ?= $(CACHE)
endif
PROFILE := --release
TIDEGATE = $(shell $(CARGO) metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/release/tidegate

.PHONY: demo test build lint format doc bench setup clean

## Compare the read strategies on a bundled trace.
demo: build
	$(TIDEGATE) list
	$(TIDEGATE) compare running-totals traces/orders.csv.gz --key customer --value amount --time-unit ms --max-lag 5s --runs 5

## Every test but the long ones.
test: setup
	$(CARGO) test $(PROFILE) --workspace

build: setup
	$(CARGO) build $(PROFILE) --workspace

## What CI asks for besides the tests.
lint: setup
	$(CARGO) fmt --all --check
	$(CARGO) clippy $(PROFILE) --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc $(PROFILE) --workspace --no-deps

format:
	$(CARGO) fmt --all

doc: setup
	$(CARGO) doc $(PROFILE) --workspace --no-deps

## The tables in the README: disk, cache and memory, about 20 minutes.
bench: build
	scripts/bench.sh $(TIDEGATE)

setup:
	@scripts/setup.sh

clean:
	$(CARGO) clean
