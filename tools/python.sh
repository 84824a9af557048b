#!/bin/sh
# Makes a Python environment in target/python for the package in python/, with the packages that it needs and the tools
# that check and test it. Does nothing if the environment is up to date.
set -eu
cd "$(dirname "$0")/.."

folder=target/python
wanted=$(
    python3 --version
    cksum python/requirements.txt tools/python.sh
    pwd
)
[ "$(cat $folder/installed 2>/dev/null)" != "$wanted" ] || exit 0

echo "installing the packages and tools for the Python package"
rm -rf $folder
python3 -m venv $folder
pip="$folder/bin/python -m pip --quiet --disable-pip-version-check"
$pip install --require-hashes -r python/requirements.txt
# Python imports the package from the checkout. `make python` builds its native part.
for packages in $folder/lib/python3*/site-packages; do
    pwd | sed 's|$|/python|' >"$packages/framewire.pth"
done
echo "$wanted" >$folder/installed
