#!/bin/sh
# Builds LuaJIT for Windows with MinGW-w64 and prints the path of luajit.exe. If that file is up to date, the script
# builds nothing.
#
# The source is Debian's package luajit. The script downloads it through apt, which checks the signatures. For this, the
# script has a separate list of sources, so the machine's own lists do not change. The script first installs Wine and
# the compilers, if they are missing.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$here/../target/luajit-windows
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
cross=x86_64-w64-mingw32-

say() { echo "luajit-windows: $*" >&2; }

missing=""
for pair in wine:wine wine64:wine64 ${cross}gcc:gcc-mingw-w64-x86-64-win32 cc:gcc make:make dpkg-source:dpkg-dev; do
    command -v "${pair%%:*}" >/dev/null 2>&1 || [ -e "/usr/lib/wine/${pair%%:*}" ] || missing="$missing ${pair#*:}"
done
if [ -n "$missing" ]; then
    if ! command -v apt-get >/dev/null 2>&1; then
        say "this system has no apt-get; install the equivalents of:$missing"
        exit 1
    fi
    sudo=""
    [ "$(id -u)" = 0 ] || sudo="sudo"
    say "installing:$missing"
    $sudo apt-get update -qq >&2
    # shellcheck disable=SC2086
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
fi

mkdir -p "$top"
top=$(cd "$top" && pwd)
if [ -f "$top/bin/luajit.exe" ] && [ "$top/bin/luajit.exe" -nt "$here/luajit-windows.sh" ]; then
    echo "$top/bin/luajit.exe"
    exit
fi

# The address of the Debian mirror in this machine's own lists.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' | grep -v security | head -n 1)
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
apt=$top/apt
rm -rf "$top/source"
mkdir -p "$apt/empty" "$apt/lists/partial" "$apt/archives/partial" "$top/source" "$top/bin"
[ -n "$mirror" ] || { say "apt has no Debian archive to fetch LuaJIT from; add one to /etc/apt/sources.list"; exit 1; }
echo "deb-src [signed-by=$keyring] $mirror $suite main" >"$apt/sources.list"
private() {
    apt-get -qq -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts="$apt/empty" \
        -o Dir::State::Lists="$apt/lists" -o Dir::Cache="$apt" -o APT::Sandbox::User= "$@" >&2
}
say "fetching the source of luajit"
private update
(cd "$top/source" && private source luajit)
source=$(find "$top/source" -maxdepth 1 -type d -name 'luajit-*')
say "building"
make -C "$source/src" -j"$(nproc)" HOST_CC=cc CROSS=$cross TARGET_SYS=Windows >"$top/build.log" 2>&1 || {
    tail -n 20 "$top/build.log" >&2
    exit 1
}
cp "$source/src/lua51.dll" "$source/src/luajit.exe" "$top/bin/"
touch "$top/bin/luajit.exe"
echo "$top/bin/luajit.exe"
