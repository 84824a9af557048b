#!/bin/sh
# Builds the wheel of the Python package in target/wheels, for CPython 3.10 and newer, and for Linux with glibc 2.28 or
# newer (manylinux_2_28). It contains the demo game, the program `framewire`, which pip installs next to Python, and all
# licences, which pip installs in share/doc/framewire.
#
#     tools/wheel.sh [PYTHON...]    builds the wheel, and then runs tools/wheel-check.sh with each PYTHON
set -eu
cd "$(dirname "$0")/.."

tools/python.sh
program=$(tools/program.sh)
PATH=$(tools/zig.sh):$PATH
export PATH
rm -rf target/wheels
# maturin takes the programs and data files of a wheel from this folder.
data=python/framewire._native.data
# The native library that was built for this checkout is moved away for a while, because it would go into the wheel too.
moved=python/framewire/_native.abi3.so
restore() {
    rm -rf $data
    [ ! -f target/native-of-checkout.so ] || mv target/native-of-checkout.so $moved
}
trap restore EXIT
trap 'exit 1' HUP INT TERM
[ ! -f $moved ] || mv $moved target/native-of-checkout.so
licences=$data/data/share/doc/framewire
mkdir -p $data/scripts $licences
install -m 755 "$program" $data/scripts/framewire
cp LICENSE-MIT LICENSE-APACHE $licences/
tools/licences.sh $licences -p framewire -p framewire-python
# maturin refuses a wheel that needs anything beyond manylinux_2_28. It reads the pyproject.toml in its working folder.
(cd python && ../target/python/bin/maturin build --quiet --release --locked --zig --compatibility manylinux_2_28 \
    --out ../target/wheels)
restore
wheel=$(ls target/wheels/framewire-*.whl)
echo "$(wc -c <"$wheel") bytes: $wheel"
[ $# = 0 ] || exec tools/wheel-check.sh "$wheel" "$@"
