#!/bin/sh
# Installs missing Debian packages. `setup.sh run` installs the packages that a build of the program needs, and
# `setup.sh test` also those that its tests need. It can be run again at any time.
set -eu

# The packages for tools/libmgba.sh.
run="cmake dpkg-dev liblua5.4-dev libpng-dev zlib1g-dev libminizip-dev libinih-dev"
# libmgba-dev is for the benchmark that compares Framewire's cores with the packaged library.
test="$run libmgba-dev mgba-qt heaptrack openssl xvfb lua5.4 lua-check luajit gcc-arm-none-eabi nginx-light wrk curl python3 chromium fonts-dejavu-core faketime"

case "${1:-run}" in
    run) wanted=$run needed=2 ;;
    test) wanted=$test needed=12 ;;
    *) echo "usage: $0 [run|test]" >&2; exit 2 ;;
esac

if ! command -v cargo >/dev/null 2>&1; then
    echo "cargo is missing: install a stable Rust toolchain (1.88 or newer) from https://rustup.rs and try again" >&2
    exit 1
fi

# If the disk gets full, the build fails with an error of the linker that does not name the cause.
if [ ! -d "${CARGO_TARGET_DIR:-target}" ]; then
    free=$(df -Pk . | awk 'NR == 2 { print int($4 / 1048576) }')
    if [ "$free" -lt "$needed" ]; then
        echo "warning: $free GiB are free on this disk, and the build needs about $needed: free some space if it fails" >&2
    fi
fi

# Node.js with npm, and Python with venv, are often installed from other sources than Debian packages.
if [ "$wanted" = "$test" ]; then
    command -v node >/dev/null 2>&1 || wanted="$wanted nodejs"
    command -v npm >/dev/null 2>&1 || wanted="$wanted npm"
    python3 -c 'import ensurepip, venv' >/dev/null 2>&1 || wanted="$wanted python3-venv"
fi

missing=""
for package in $wanted; do
    status=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
    [ "$status" = "install ok installed" ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
    echo "this system has no apt-get; install the equivalents of:$missing" >&2
    exit 1
fi
sudo=""
[ "$(id -u)" = 0 ] || sudo="sudo"
echo "installing:$missing"
# At the same time, Cargo downloads the packages for the build. If it cannot, the build reports it.
cargo fetch --locked --quiet 2>/dev/null &
export DEBIAN_FRONTEND=noninteractive
# The package lists of this machine can be missing or outdated. They are updated only if the first attempt fails.
# shellcheck disable=SC2086
$sudo apt-get install -y -qq --no-install-recommends $missing >/dev/null 2>&1 || {
    $sudo apt-get update -qq
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
}
wait
