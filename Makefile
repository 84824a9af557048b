# The whole interface of the checkout. `make run` and `make test` need nothing done before them.

CARGO ?= cargo
LUA ?= lua5.4
LUAJIT ?= luajit

.PHONY: run test loom bench rom setup setup-test fmt lint build

run: setup
	$(CARGO) build --release --locked -p framewire
	exec target/release/framewire serve $(ARGS)

build: setup
	$(CARGO) build --release --locked -p framewire

test: setup-test lint
	$(CARGO) build --locked -p framewire
	$(CARGO) test --locked --workspace
	$(MAKE) loom
	$(LUA) lua/tests/run.lua
	$(LUAJIT) luajit/tests/run.lua
	$(MAKE) -C rom check

# Every interleaving of the channel's rings: a quarter of a minute.
loom:
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom $(CARGO) test --locked --release -p framewire-channel --lib model

# Figures, not tests: they want a quiet machine.
bench: setup-test
	$(CARGO) build --release --locked -p framewire
	benches/run.sh

rom: setup-test
	$(MAKE) -C rom

setup:
	@tools/setup.sh run

setup-test:
	@tools/setup.sh test

fmt:
	$(CARGO) fmt --all

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	cd lua && luacheck --quiet .
	cd luajit && luacheck --quiet .
