# All commands for this checkout. `make run` and `make test` first install the packages that they need.

CARGO ?= cargo
LUA ?= lua5.4
LUAJIT ?= luajit

.PHONY: run dist dist-check dist-windows dist-windows-check test python python-native test-python-checks wheel wheel-check bench-python bench-fleet lint-python browser browser-baselines loom bench bench-cores lab bench-luajit soak soak-luajit test-windows test-kqueue fuzz schemathesis mcp-conformance study generate rom setup setup-test fmt lint lint-page build

run:
	@tools/setup.sh run $(CARGO) build --release --locked -p framewire
	exec target/release/framewire serve $(ARGS)

# Builds the program and the script for a stock mGBA: target/release/framewire and target/framewire.lua.
build:
	@tools/setup.sh run $(CARGO) build --release --locked -p framewire
	target/release/framewire script --output target/framewire.lua

# Builds the archive for Linux, dist/framewire-VERSION-x86_64-linux.tar.gz. Its program needs only glibc 2.28 or
# newer and libgcc_s.
dist: setup
	tools/dist.sh

# Tests the archive for Linux in minimal Debian 11, 12 and 13 systems, which it first installs in folders. It needs root.
dist-check:
	tools/dist-check.sh

# Builds the archive for Windows, dist/framewire-VERSION-x86_64-windows.zip. Its program can attach to an mGBA window, but has
# no embedded cores.
dist-windows:
	tools/dist-windows.sh

# Tests the archive for Windows with Wine and a stock mGBA, in half a minute.
dist-windows-check: setup-test
	$(CARGO) build --locked -p framewire-lab --example window
	tools/dist-windows-check.py dist/framewire-*-x86_64-windows.zip target/debug/examples/window

test: setup-test lint
	$(CARGO) test --locked --workspace --all-features
	tools/mcp-conformance.sh target/debug/framewire target/debug/examples/mcp_conformance
	$(MAKE) loom
	$(LUA) lua/tests/run.lua
	$(LUA) lua/tests/fuzz.lua
	$(LUAJIT) luajit/tests/run.lua
	$(MAKE) -C rom check
	$(MAKE) python
	$(MAKE) browser

# Tests the Python package with an embedded core and with a stock mGBA, in about five minutes.
python: setup-test lint-python python-native
	$(CARGO) build --locked --workspace --all-features --bin framewire --example window
	cd python && ../target/python/bin/python -m pytest --quiet $(ARGS)

# Tests the environments with Gymnasium 1.2.2, with the checks of Stable-Baselines3 and RLlib, and the metrics that Ray exports.
# This takes a minute; the first run also installs these packages, which takes some minutes. `make python` tests with the
# newest Gymnasium.
test-python-checks: python-native
	$(CARGO) build --locked --workspace --all-features --bin framewire
	tools/python-checks.sh $(ARGS)

# Builds the native part of the Python package into python/framewire. Use PROFILE=release for measurements.
PROFILE ?= dev
python-native: setup-test
	$(CARGO) build --locked --profile $(PROFILE) -p framewire-python
	cp target/$(subst dev,debug,$(PROFILE))/lib_native.so python/framewire/_native.abi3.so

# Builds a wheel in target/wheels, for Linux with glibc 2.28 or newer, in ten minutes. It contains the program `framewire`. Then
# checks the wheel with auditwheel, and installs and tests it with each Python of PYTHONS.
PYTHONS ?= python3
wheel: setup-test
	tools/wheel.sh $(PYTHONS)

# Tests the wheel with Python 3.13 in a minimal Debian 13 system, which it first installs in a folder. It needs root.
wheel-check:
	tools/wheel-system.sh target/wheels/framewire-*.whl

# Tests the console page in Chromium, with an embedded core and with a stock mGBA, in about fifteen minutes.
browser: setup-test lint-page
	$(CARGO) build --locked --workspace --all-features --bin framewire --example window
	cd tests/browser && npm test --silent -- $(ARGS)

# Makes new reference pictures of the console page. Look at them before you commit them.
browser-baselines:
	$(MAKE) browser ARGS="look --update-snapshots=all"

# Tests the channel's rings with loom: with every interleaving of two threads that has at most three preemptions, or two in
# one of the tests. This takes 15 seconds.
loom:
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom $(CARGO) test --locked --release -p framewire-channel --lib model

# Measures the table of figures in docs/performance.md, which explains its lines. This takes eight minutes, on a machine that
# does nothing else. The results go to docs/performance/figures.json and into the table on that page. With QUICK=1 or
# ONLY=line,line it measures less, and only prints the results.
bench: lab
	target/release/framewire-lab table $(if $(QUICK)$(ONLY),$(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY)),\
		--json docs/performance/figures.json --page docs/performance.md)

# The long run: for MINUTES (10), sends requests of mixed sizes through the server to an mGBA window. Then it tests saving with
# kills and full disks. The results of a ten-minute run go to docs/performance/soak.json and docs/performance.md; those of
# other runs are only printed.
soak: lab
	target/release/framewire-lab soak $(if $(filter-out 10,$(MINUTES)),--minutes $(MINUTES),\
		--json docs/performance/soak.json --page docs/performance.md)
	FRAMEWIRE_KILLS=300 FRAMEWIRE_FULL_DISKS=100 $(CARGO) test --release --locked -p framewire-e2e --test e2e saves::

lab: setup-test
	$(CARGO) build --release --locked -p framewire -p framewire-lab

# Tests the LuaJIT library's kqueue code, on Linux with libkqueue, in a second. It is not part of `make test`, because Debian
# has libkqueue only in its suite `experimental`.
test-kqueue:
	library=$$(tools/libkqueue.sh) && $(LUAJIT) luajit/tests/kqueue.lua $$library $(ARGS)

# Tests the LuaJIT library's Windows code under Wine, in 5 seconds. The first run takes some minutes, because it also installs
# Wine and MinGW-w64 and builds LuaJIT.
test-windows:
	luajit=$$(tools/luajit-windows.sh) && printf 'k\033[A' | \
		WINEPREFIX=$(CURDIR)/target/wine WINEDEBUG=-all wine $$luajit luajit/tests/windows.lua $(ARGS)

# The long run of the LuaJIT library: MINUTES (10) of serve.lua under load, then 500 kills of each side of a channel.
soak-luajit: setup-test
	$(CARGO) build --release --locked -p framewire
	$(LUAJIT) benches/luajit/soak.lua $(or $(MINUTES),10)
	FRAMEWIRE_KILLS=500 $(CARGO) test --release --locked -p framewire-channel --test channel kill
	FRAMEWIRE_KILLS=500 FRAMEWIRE_BIN=target/release/framewire $(LUAJIT) luajit/tests/run.lua kill

# Benchmarks the LuaJIT library and the channel.
bench-luajit: setup-test
	$(CARGO) build --release --locked -p framewire
	$(CARGO) build --release --locked -p framewire-channel --example pingpong
	$(LUAJIT) benches/luajit/run.lua $(ARGS)

# Compares frames per second of our cores with those of Debian's libmgba, and measures the memory of 500 cores, in a minute and
# a half. The results go to docs/performance.
bench-cores: setup-test
	$(CARGO) build --release --locked -p framewire-libmgba --example cores
	$(CC) -O2 -std=gnu11 -o target/bare-packaged benches/bare.c -lmgba
	target/release/examples/cores target/bare-packaged >target/cores.json
	mv target/cores.json docs/performance/cores.json

# Benchmarks the Python client and the environments. The results go to docs/performance. PEERS can be a Python interpreter that
# has stable-retro, PyBoy, Gymnasium and OpenCV; then these are measured in the same run.
bench-python: setup-test
	$(CARGO) build --release --locked -p framewire
	target/python/bin/python python/benches/client.py --json docs/performance/python.json
	$(CARGO) build --release --locked -p framewire-vecenv --example bare
	$(MAKE) python-native PROFILE=release
	target/python/bin/python python/benches/envs.py target/release/examples/bare --framewire target/release/framewire \
		$(if $(PEERS),--peers $(PEERS)) --json docs/performance/environments.json

# Benchmarks fleets of 1, 2 and 4 nodes on this machine, including while nodes are killed, in four minutes.
bench-fleet: setup-test
	$(MAKE) python-native PROFILE=release
	cd python && ../target/python/bin/python benches/fleet.py --json ../docs/performance/fleets.json

# Tests each decoder of the program and of the script with a million mutated inputs.
fuzz: setup-test
	FUZZ=1000000 $(CARGO) test --release --locked -p framewire-protocol --test fuzz
	FUZZ=1000000 $(CARGO) test --release --locked -p framewire-media hostile
	$(LUA) lua/tests/fuzz.lua 1000000

# Sends valid and invalid requests, generated from the OpenAPI document, to a server of its own. Checks that no response is a
# 500 and that each response matches the document. It needs `pip install schemathesis`. MAX_TIME limits the run, in seconds.
schemathesis: build
	tools/schemathesis.sh target/release/framewire $(ARGS)

# Runs the conformance tests of the Model Context Protocol on /mcp, in a few seconds.
mcp-conformance: build
	$(CARGO) build --release --locked -p framewire --example mcp_conformance
	tools/mcp-conformance.sh target/release/framewire target/release/examples/mcp_conformance

# Repeats the load-test study of 2025 in half an hour and writes docs/study.md. `make study ARGS=--rerun` measures a tenth of
# the rows again and compares them.
study: lab
	exec target/release/framewire-lab study $(ARGS)

# Generates the files that come from the table of operations, and Python's synchronous client. Tests check that they are up to
# date.
generate: setup
	FRAMEWIRE_GENERATE=1 $(CARGO) test --quiet --locked -p framewire-protocol --test generated
	@tools/python.sh
	target/python/bin/python python/generate.py

rom: setup-test
	$(MAKE) -C rom

setup:
	@tools/setup.sh run

setup-test:
	@tools/setup.sh test
	@tools/clients.sh
	@tools/python.sh

fmt:
	$(CARGO) fmt --all

lint: lint-page lint-python
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets --all-features -- -D warnings
	$(CARGO) clippy --locked -p framewire --all-targets --no-default-features -- -D warnings
	tools/prose.py
	tools/structure.py
	cd lua && luacheck --quiet .
	cd luajit && luacheck --quiet .
	luacheck --quiet --config luajit/.luacheckrc benches crates/channel

# Checks the types (mypy) and the style (ruff) of the Python package.
lint-python:
	@tools/python.sh
	cd python && ../target/python/bin/ruff check --quiet . && ../target/python/bin/ruff format --quiet --check .
	cd python && ../target/python/bin/python generate.py --check && ../target/python/bin/mypy --no-error-summary

# Checks the types (tsc) and the style (biome) of the console page and of its tests.
lint-page:
	cd tests/browser && npm ci --silent --no-audit --no-fund && npm run --silent check
