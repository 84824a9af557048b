#!/bin/sh
# Builds the wheel of the Python package in target/wheels: for CPython 3.10 and newer, and Linux with glibc 2.28 or newer
# (manylinux_2_28). It has the demo game.
#
#     tools/wheel.sh [PYTHON...]    then installs it into an empty environment of each PYTHON, and runs the demo there
set -eu
cd "$(dirname "$0")/.."

tools/python.sh
PATH=$(tools/zig.sh):$PATH
export PATH
cp rom/framewire-demo.gba rom/memory-map.toml python/framewire/data/
# A library that was built for this checkout would go into the wheel too.
rm -rf target/wheels
moved=python/framewire/_native.abi3.so
[ ! -f $moved ] || mv $moved target/native-of-checkout.so
restore() { [ ! -f target/native-of-checkout.so ] || mv target/native-of-checkout.so $moved; }
trap restore EXIT
# maturin refuses a wheel that needs anything beyond manylinux_2_28. It reads pyproject.toml of the folder in which it runs.
(cd python && ../target/python/bin/maturin build --quiet --release --locked --zig --compatibility manylinux_2_28 \
    --out ../target/wheels)
restore
wheel=$PWD/$(ls target/wheels/framewire-*.whl)
echo "$(wc -c <"$wheel") bytes: $wheel"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for python in "$@"; do
    rm -rf "$work/venv"
    "$python" -m venv "$work/venv"
    "$work/venv/bin/python" -m pip --quiet --disable-pip-version-check install "${wheel}[gym]"
    "$python" --version
    (cd "$work" && venv/bin/python -m framewire.demo --frames 600 && venv/bin/python -c '
import gymnasium
env = gymnasium.make("framewire.envs:framewire/DemoMemory-v0")
print("observation", env.reset(seed=1)[0].shape)')
done
