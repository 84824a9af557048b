#!/bin/sh
# Checks a wheel: runs tools/wheel-check.sh with Python 3.13 in a minimal Debian 13 system. The first run installs that
# system with debootstrap in target/systems, which takes a minute or two. Every run needs root.
#
#     tools/wheel-system.sh WHEEL
set -eu
wheel=$(realpath "$1")
cd "$(dirname "$0")/.."

suite=trixie
version=3.13
system=target/systems/$suite-python

[ "$(id -u)" = 0 ] || { echo "wheel-system: only root can install and enter such systems; run this script with sudo" >&2; exit 1; }
if [ ! -d $system ]; then
    [ -e /usr/sbin/debootstrap ] || DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends debootstrap
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' | grep -v security | head -n 1)
    rm -rf $system.new
    mkdir -p target/systems
    debootstrap --variant=minbase --include=python3,python3-venv $suite $system.new "${mirror:-http://deb.debian.org/debian}" \
        >$system.log 2>&1 || { tail -n 5 $system.log >&2; exit 1; }
    mv $system.new $system
fi

try=$system/try
trap 'rm -rf "$try"' EXIT
trap 'exit 1' HUP INT TERM
rm -rf $try
mkdir -p $try/top/tools $try/top/docs $try/top/rom $try/wheels
cp README.md $try/top/
cp docs/python.md docs/environments.md $try/top/docs/
cp rom/framewire-demo.gba rom/memory-map.toml $try/top/rom/
cp tools/wheel-check.sh tools/examples.py $try/top/tools/
cp "$wheel" $try/
# The tests in that system do not use the network, so this downloads the packages for its Python.
python3 -m venv $try/pip
platforms=$(for minor in 28 27 17 5; do echo "--platform manylinux_2_${minor}_x86_64"; done)
# shellcheck disable=SC2086 # they are several arguments
$try/pip/bin/python -m pip --quiet --disable-pip-version-check download --only-binary=:all: --python-version $version \
    $platforms --platform manylinux2014_x86_64 --dest $try/wheels "$wheel[client,gym]" 'auditwheel>=6.4,<7'
PIP_NO_INDEX=1 PIP_FIND_LINKS=/try/wheels chroot $system /try/top/tools/wheel-check.sh "/try/$(basename "$wheel")" python3
