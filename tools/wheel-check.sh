#!/bin/sh
# Checks a wheel with auditwheel, installs it into an empty environment of each PYTHON, and tests it there: with the
# demo, with a Gymnasium environment, with the program `framewire`, and with the Python examples in the README,
# docs/python.md and docs/environments.md.
#
#     tools/wheel-check.sh WHEEL PYTHON...
set -eu
wheel=$(realpath "$1")
shift
top=$(cd "$(dirname "$0")/.." && pwd)

work=$(mktemp -d)
server=
stop() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    [ -z "$server" ] || wait "$server" 2>/dev/null || true
    server=
}
trap 'stop; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
python3 -m venv "$work/audit"
"$work/audit/bin/python" -m pip --quiet --disable-pip-version-check install 'auditwheel>=6.4,<7'
"$work/audit/bin/auditwheel" show "$wheel" | tee "$work/audited"
grep -q '"manylinux_2_28_x86_64"' "$work/audited" ||
    { echo "auditwheel finds that $wheel is not a manylinux_2_28 wheel" >&2; exit 1; }

for python in "$@"; do
    rm -rf "$work/venv" "$work/data" "$work/url"
    "$python" -m venv "$work/venv"
    "$work/venv/bin/python" -m pip --quiet --disable-pip-version-check install "${wheel}[client,gym]"
    "$python" --version
    cd "$work"
    venv/bin/python -m framewire.demo --frames 600
    venv/bin/python -c '
import gymnasium
env = gymnasium.make("framewire.envs:framewire/DemoMemory-v0")
print("observation", env.reset(seed=1)[0].shape)'
    venv/bin/framewire --version
    # Serves the demo game, as the examples in the README expect.
    mkfifo "$work/url"
    venv/bin/framewire serve --rom "$top/rom/framewire-demo.gba" --symbols "$top/rom/memory-map.toml" --listen 127.0.0.1:0 \
        --data "$work/data" >"$work/url" 2>"$work/log" &
    server=$!
    # Without a line, the server did not start. `read` then fails, and the check below shows why.
    read -r line <"$work/url" || true
    FRAMEWIRE_URL=$(echo "$line" | sed -n 's/.*listening on \([^ ]*\).*/\1/p')
    export FRAMEWIRE_URL
    [ -n "$FRAMEWIRE_URL" ] || { cat "$work/log" >&2; exit 1; }
    venv/bin/python "$top/tools/examples.py" "$top/README.md" "$top/docs/python.md" "$top/docs/environments.md"
    stop
    cd "$top"
done
