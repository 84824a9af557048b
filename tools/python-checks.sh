#!/bin/sh
# Tests the environments with Gymnasium 1.2.2, the version that RLlib 2.60 needs, and with the checks of
# Stable-Baselines3 and RLlib. Also tests the metrics that Ray exports for fleets (docs/fleets.md). The necessary
# packages go into target/python-checks and take 6 GB. `make test` uses a newer Gymnasium, and skips these checks
# because they need PyTorch and `ray[default]`.
#
#     tools/python-checks.sh [PYTEST_ARGUMENT...]
set -eu
cd "$(dirname "$0")/.."

folder=target/python-checks
wanted=$(
    python3 --version
    cksum tools/python-checks.sh
    pwd
)
if [ "$(cat $folder/installed 2>/dev/null)" != "$wanted" ]; then
    echo "installing Gymnasium 1.2.2, Stable-Baselines3, RLlib and PyTorch"
    rm -rf $folder
    python3 -m venv $folder
    $folder/bin/python -m pip --quiet --disable-pip-version-check install gymnasium==1.2.2 'ray[default,rllib]==2.60.0' \
        stable-baselines3==2.9.2 torch==2.15.0 'websockets>=15' 'pillow>=10' 'pytest>=9' 'pytest-asyncio>=1.5'
    # Python imports the package from the checkout, so changes take effect without another installation.
    for packages in $folder/lib/python3*/site-packages; do
        pwd | sed 's|$|/python|' >"$packages/framewire.pth"
    done
    echo "$wanted" >$folder/installed
fi
cd python
exec ../$folder/bin/python -m pytest --quiet tests/test_checks.py tests/test_envs.py tests/test_determinism.py \
    tests/test_ray_metrics.py "$@"
