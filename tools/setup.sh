#!/bin/sh
# Installs missing Debian packages. `setup.sh run` installs the packages that a build of the program needs, and
# `setup.sh test` also those that its tests need. It can be run again at any time.
#
# `setup.sh run COMMAND...` runs COMMAND, a build of the program, at the same time. tools/libmgba.sh, which is the part of
# the build that needs the packages, waits until they are installed.
set -eu

# The packages for tools/libmgba.sh.
run="cmake dpkg-dev liblua5.4-dev libpng-dev zlib1g-dev libminizip-dev libinih-dev"
# libmgba-dev is for the benchmark that compares Framewire's cores with the packaged library.
test="$run libmgba-dev mgba-qt heaptrack openssl xvfb lua5.4 lua-check luajit gcc-arm-none-eabi nginx-light wrk curl python3 chromium-headless-shell fonts-dejavu-core faketime"

# `needed` is the disk space that the build takes, in GiB.
case "${1:-run}" in
    run) wanted=$run needed=2 ;;
    test) wanted=$test needed=12 ;;
    *) echo "usage: $0 [run|test] [COMMAND...]" >&2; exit 2 ;;
esac
[ $# = 0 ] || shift

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

# Node.js with npm, and Python with venv, are often installed from sources other than Debian packages.
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
if [ -z "$missing" ]; then
    [ $# = 0 ] || exec "$@"
    exit
fi

if ! command -v apt-get >/dev/null 2>&1; then
    echo "this system has no apt-get; install the equivalents of:$missing" >&2
    exit 1
fi
sudo=""
if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
        echo "only root can install packages, and there is no sudo; run this command as root, then try again:" >&2
        echo "apt-get install -y --no-install-recommends$missing" >&2
        exit 1
    fi
    sudo="sudo"
    # Ask for the password now, before the command prints anything.
    sudo --validate
fi

# The package lists of this machine can be missing or outdated. They are updated only if the first attempt fails.
install_missing() {
    # shellcheck disable=SC2086
    set -- $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
    "$@" >/dev/null 2>&1 || {
        $sudo apt-get update -qq
        "$@" >/dev/null
    }
}

echo "installing:$missing"
# tools/libmgba.sh waits for this lock. The packages are installed in the background, so that an interrupt ends the
# command, but not dpkg.
libmgba=${FRAMEWIRE_LIBMGBA_DIR:-target/libmgba}
mkdir -p "$libmgba"
exec 9>"$libmgba/lock"
flock 9
# The subshell keeps the lock until the packages are installed. apt-get and its children do not inherit the lock.
(install_missing 9>&-) &
exec 9>&-
status=0
"$@" || status=$?
wait $! || {
    echo "the packages could not be installed; see the error of apt-get above" >&2
    exit 1
}
exit "$status"
