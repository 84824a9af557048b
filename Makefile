# The whole interface of the checkout. `make run` and `make test` need nothing done before them.

CARGO ?= cargo
LUA ?= lua5.4
LUAJIT ?= luajit

.PHONY: run dist dist-check dist-windows dist-windows-check test python python-native test-python-checks wheel wheel-check bench-python bench-fleet lint-python browser browser-baselines loom bench bench-cores lab bench-luajit soak soak-luajit test-windows test-kqueue fuzz schemathesis mcp-conformance study generate rom setup setup-test fmt lint lint-page build

run: setup
	$(CARGO) build --release --locked -p framewire
	exec target/release/framewire serve $(ARGS)

# The program, and the script for a stock mGBA: target/release/framewire and target/framewire.lua.
build: setup
	$(CARGO) build --release --locked -p framewire
	target/release/framewire script --output target/framewire.lua

# The archive for Linux, dist/framewire-VERSION-x86_64-linux.tar.gz: one program that needs only glibc 2.28 or newer.
dist: setup
	tools/dist.sh

# Tries that archive in small systems of Debian 11, 12 and 13, which it makes first. It needs root.
dist-check:
	tools/dist-check.sh

# The archive for Windows, dist/framewire-VERSION-x86_64-windows.zip: the half that attaches to an mGBA window.
dist-windows:
	tools/dist-windows.sh

# Tries that archive with Wine and a stock mGBA: half a minute.
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

# The Python package with an embedded core and with a stock mGBA: about a minute.
python: setup-test lint-python python-native
	$(CARGO) build --locked --workspace --all-features --bin framewire --example window
	cd python && ../target/python/bin/python -m pytest --quiet $(ARGS)

# The environments with Gymnasium 1.2.2, the checks of Stable-Baselines3 and RLlib, and the metrics that Ray exports: a minute, and
# some minutes the first time, which installs them. `make python` has the newest Gymnasium.
test-python-checks: python-native
	$(CARGO) build --locked --workspace --all-features --bin framewire
	tools/python-checks.sh $(ARGS)

# The native part of the Python package, for the package in this checkout. PROFILE=release is for measurements.
PROFILE ?= dev
python-native: setup-test
	$(CARGO) build --locked --profile $(PROFILE) -p framewire-python
	cp target/$(subst dev,debug,$(PROFILE))/lib_native.so python/framewire/_native.abi3.so

# A wheel for Linux with glibc 2.28 or newer, in target/wheels, with the program `framewire`: ten minutes. It is checked with
# auditwheel, and installed and tried with each of PYTHONS.
PYTHONS ?= python3
wheel: setup-test
	tools/wheel.sh $(PYTHONS)

# Tries that wheel with Python 3.13 in a small system of Debian 13, which it makes first. It needs root.
wheel-check:
	tools/wheel-system.sh target/wheels/framewire-*.whl

# The console page in Chromium, on an embedded core and on a stock mGBA: about a minute.
browser: setup-test lint-page
	$(CARGO) build --locked --workspace --all-features --bin framewire --example window
	cd tests/browser && npm test --silent -- $(ARGS)

# The pictures that the console page is compared with, again; look at them before they are committed.
browser-baselines:
	$(MAKE) browser ARGS="look --update-snapshots=all"

# Every interleaving of the channel's rings: a quarter of a minute.
loom:
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom $(CARGO) test --locked --release -p framewire-channel --lib model

# The table of figures, for eight minutes on a machine that does nothing else; docs/performance.md explains its lines. It is
# written into docs/performance/figures.json and that page. QUICK=1 or ONLY=line,line measures less and only prints.
bench: lab
	target/release/framewire-lab table $(if $(QUICK)$(ONLY),$(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY)),\
		--json docs/performance/figures.json --page docs/performance.md)

# The long run: MINUTES (10) of mixed requests through the bridge on a window, then kills and full disks while saving. Ten
# minutes are written into docs/performance/soak.json and the page, other lengths are only printed.
soak: lab
	target/release/framewire-lab soak $(if $(filter-out 10,$(MINUTES)),--minutes $(MINUTES),\
		--json docs/performance/soak.json --page docs/performance.md)
	FRAMEWIRE_KILLS=300 FRAMEWIRE_FULL_DISKS=100 $(CARGO) test --release --locked -p framewire-e2e --test e2e saves::

lab: setup-test
	$(CARGO) build --release --locked -p framewire -p framewire-lab

# The LuaJIT library's kqueue, on Linux with libkqueue: a second. Not part of `make test`, because Debian has libkqueue in
# its suite `experimental` only.
test-kqueue:
	library=$$(tools/libkqueue.sh) && $(LUAJIT) luajit/tests/kqueue.lua $$library $(ARGS)

# The LuaJIT library on Windows, by Wine: 5 seconds, and some minutes the first time, which installs Wine and MinGW-w64 and
# builds LuaJIT.
test-windows:
	luajit=$$(tools/luajit-windows.sh) && printf 'k\033[A' | \
		WINEPREFIX=$(CURDIR)/target/wine WINEDEBUG=-all wine $$luajit luajit/tests/windows.lua $(ARGS)

# The LuaJIT side's long run: MINUTES (10) of serve.lua under load, then 500 kills of each side of a channel.
soak-luajit: setup-test
	$(CARGO) build --release --locked -p framewire
	$(LUAJIT) benches/luajit/soak.lua $(or $(MINUTES),10)
	FRAMEWIRE_KILLS=500 $(CARGO) test --release --locked -p framewire-channel --test channel kill
	FRAMEWIRE_KILLS=500 FRAMEWIRE_BIN=target/release/framewire $(LUAJIT) luajit/tests/run.lua kill

# The figures of the LuaJIT side and of the channel.
bench-luajit: setup-test
	$(CARGO) build --release --locked -p framewire
	$(CARGO) build --release --locked -p framewire-channel --example pingpong
	$(LUAJIT) benches/luajit/run.lua $(ARGS)

# Frames per second of cores next to those of the packaged libmgba, and the memory of 500 cores: a minute and a half. Written
# into docs/performance.
bench-cores: setup-test
	$(CARGO) build --release --locked -p framewire-libmgba --example cores
	$(CC) -O2 -std=gnu11 -o target/bare-packaged benches/bare.c -lmgba
	target/release/examples/cores target/bare-packaged >target/cores.json
	mv target/cores.json docs/performance/cores.json

# The figures of the Python client and of environments; they are written into docs/performance.
# PEERS names a Python with stable-retro, PyBoy, Gymnasium and OpenCV, to measure them in the same run.
bench-python: setup-test
	$(CARGO) build --release --locked -p framewire
	target/python/bin/python python/benches/client.py --json docs/performance/python.json
	$(CARGO) build --release --locked -p framewire-vecenv --example bare
	$(MAKE) python-native PROFILE=release
	target/python/bin/python python/benches/envs.py target/release/examples/bare --framewire target/release/framewire \
		$(if $(PEERS),--peers $(PEERS)) --json docs/performance/environments.json

# Fleets of 1, 2 and 4 nodes on this machine, and nodes that are killed: four minutes.
bench-fleet: setup-test
	$(MAKE) python-native PROFILE=release
	cd python && ../target/python/bin/python benches/fleet.py --json ../docs/performance/fleets.json

# A million mutated inputs for each decoder, the program's and the script's.
fuzz: setup-test
	FUZZ=1000000 $(CARGO) test --release --locked -p framewire-protocol --test fuzz
	FUZZ=1000000 $(CARGO) test --release --locked -p framewire-media hostile
	$(LUA) lua/tests/fuzz.lua 1000000

# Requests made from the OpenAPI document, valid ones and others, against a server of its own: no 500, and nothing that the
# document does not say. It needs `pip install schemathesis`; MAX_TIME is its time in seconds.
schemathesis: build
	tools/schemathesis.sh target/release/framewire $(ARGS)

# The conformance suite of the Model Context Protocol, against /mcp: seconds.
mcp-conformance: build
	$(CARGO) build --release --locked -p framewire --example mcp_conformance
	tools/mcp-conformance.sh target/release/framewire target/release/examples/mcp_conformance

# The load-test study of 2025 again, in half an hour: docs/study.md. `make study ARGS=--rerun` compares a tenth of its rows.
study: lab
	exec target/release/framewire-lab study $(ARGS)

# The files that are made from the table of operations, and Python's synchronous client; tests compare them.
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

# Types (mypy) and style (ruff) of the Python package.
lint-python:
	@tools/python.sh
	cd python && ../target/python/bin/ruff check --quiet . && ../target/python/bin/ruff format --quiet --check .
	cd python && ../target/python/bin/python generate.py --check && ../target/python/bin/mypy --no-error-summary

# Types (tsc) and style (biome) of the console page and of its tests.
lint-page:
	cd tests/browser && npm ci --silent --no-audit --no-fund && npm run --silent check
