#!/bin/sh
# Installs zig and cargo-zigbuild in target/zig and prints the folder of their programs. Programs that are built with
# them also run on systems with an older C library. Installs nothing if they are up to date.
set -eu
cd "$(dirname "$0")/.."

folder=target/zig
wanted=$(
    python3 --version
    cksum tools/zig-requirements.txt tools/zig.sh
    pwd
)
if [ "$(cat $folder/installed 2>/dev/null)" != "$wanted" ]; then
    echo "installing zig and cargo-zigbuild" >&2
    rm -rf $folder
    python3 -m venv $folder
    $folder/bin/python -m pip --quiet --disable-pip-version-check install --require-hashes -r tools/zig-requirements.txt >&2
    echo "$wanted" >$folder/installed
fi
echo "$PWD/$folder/bin"
