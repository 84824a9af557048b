#!/bin/sh
# Installs the client generators for the tests in tests/clients, and the dependencies of the generated clients. They go
# into a Python environment and into node_modules in target/clients. Does nothing if they are up to date.
set -eu
cd "$(dirname "$0")/.."

from=tests/clients
folder=target/clients
wanted=$(
    python3 --version
    cksum $from/requirements.txt $from/package-lock.json
    pwd
)
[ "$(cat $folder/installed 2>/dev/null)" != "$wanted" ] || exit 0

echo "installing the client generators"
rm -rf $folder
mkdir -p $folder
python3 -m venv $folder/venv
$folder/venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $from/requirements.txt
cp $from/package.json $from/package-lock.json $folder
(cd $folder && npm ci --silent --no-audit --no-fund)
echo "$wanted" >$folder/installed
