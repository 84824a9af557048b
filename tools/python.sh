#!/bin/sh
# Installs the Python package of python/, and what checks and tests it, in target/python. Does nothing if it is up to date.
set -eu
cd "$(dirname "$0")/.."

folder=target/python
wanted=$(
    python3 --version
    cksum python/requirements.txt python/pyproject.toml
    pwd
)
[ "$(cat $folder/installed 2>/dev/null)" != "$wanted" ] || exit 0

echo "installing what the Python package needs"
rm -rf $folder
python3 -m venv $folder
pip="$folder/bin/python -m pip --quiet --disable-pip-version-check"
$pip install --require-hashes -r python/requirements.txt
$pip install --no-deps --no-build-isolation --editable python
echo "$wanted" >$folder/installed
