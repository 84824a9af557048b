#!/bin/sh
# Finds a Rust compiler that can build for Windows (x86_64-pc-windows-gnu). Prints environment variables for the build,
# one per line, for `env`. If this machine's compiler has the standard library for Windows, the script prints nothing.
# Otherwise it downloads Debian's Rust compiler and the source of the standard library, which cargo then compiles.
# These packages are only unpacked, in target/rust-windows, so the machine's own compiler does not change. The script
# first installs MinGW-w64, which links the program, if it is missing.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$here/../target/rust-windows
target=x86_64-pc-windows-gnu
# These names contain no version, so apt takes the newest version that it has.
packages="rustc-web rust-web-src libstd-rust-web-dev"

say() { echo "rust-windows: $*" >&2; }
die() { say "$@"; exit 1; }

if ! command -v x86_64-w64-mingw32-gcc >/dev/null; then
    command -v apt-get >/dev/null || die "MinGW-w64 is missing; install the equivalent of gcc-mingw-w64-x86-64-win32"
    sudo=""
    [ "$(id -u)" = 0 ] || sudo="sudo"
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        gcc-mingw-w64-x86-64-win32 >/dev/null
fi
[ ! -d "$(rustc --print sysroot)/lib/rustlib/$target/lib" ] || exit 0

mkdir -p "$top"
top=$(cd "$top" && pwd)
if [ ! -f "$top/installed" ]; then
    command -v apt-get >/dev/null ||
        die "the standard library for Windows is missing; with rustup: rustup target add $target"
    say "downloading Debian's Rust compiler and its source"
    rm -rf "$top/packages" "$top/unpacked"
    mkdir -p "$top/packages" "$top/unpacked"
    # The names of the compiler's libraries contain versions, so this looks them up.
    libraries=$(apt-cache depends libstd-rust-web-dev | sed -n 's/.*Depends: \(libstd-rust-web-[0-9.]*\)$/\1/p')
    newest=$(printf '%s\n' "$libraries" | sort -V | tail -n 1)
    [ -n "$newest" ] || die "apt has no rustc-web, which is in Debian 12; with rustup: rustup target add $target"
    llvm=$(apt-cache depends "$newest" | sed -n 's/.*Depends: \(libllvm[0-9]*\)$/\1/p' | sort -V | tail -n 1)
    # shellcheck disable=SC2086
    (cd "$top/packages" && apt-get -q -o APT::Sandbox::User= download $packages "$newest" $llvm >&2)
    for package in "$top"/packages/*.deb; do dpkg-deb -x "$package" "$top/unpacked"; done
    rm -rf "$top/packages"
    touch "$top/installed"
fi
echo "RUSTC=$top/unpacked/usr/bin/rustc"
echo "LD_LIBRARY_PATH=$top/unpacked/usr/lib/x86_64-linux-gnu"
# With this variable, a stable compiler accepts -Zbuild-std.
echo "RUSTC_BOOTSTRAP=1"
