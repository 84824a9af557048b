#!/bin/sh
# Installs the Python package of python/, and what checks and tests it, in target/python. Does nothing if it is up to date.
set -eu
cd "$(dirname "$0")/.."

folder=target/python
wanted=$(
    python3 --version
    cksum python/requirements.txt tools/python.sh
    pwd
)
[ "$(cat $folder/installed 2>/dev/null)" != "$wanted" ] || exit 0

echo "installing what the Python package needs"
rm -rf $folder
python3 -m venv $folder
pip="$folder/bin/python -m pip --quiet --disable-pip-version-check"
$pip install --require-hashes -r python/requirements.txt
# The package is used as it is in the checkout; `make python` builds its native part.
for packages in $folder/lib/python3*/site-packages; do
    pwd | sed 's|$|/python|' >"$packages/framewire.pth"
done
echo "$wanted" >$folder/installed
