#!/bin/sh
# Finds a Rust compiler that can build for Windows (x86_64-pc-windows-gnu), and prints the settings to build with, one a line, for
# `env`. If the compiler of this machine has the standard library for Windows, there are none. Otherwise they name Debian's
# compiler in target/rust-windows, with whose source cargo builds that library. It comes through apt and is only unpacked, so
# the machine's own compiler stays as it is.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$here/../target/rust-windows
target=x86_64-pc-windows-gnu
# Each without its version: the newest that apt has.
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
    say "fetching Debian's Rust compiler and its source"
    rm -rf "$top/packages" "$top/unpacked"
    mkdir -p "$top/packages" "$top/unpacked"
    # The libraries of the compiler have versions in their names, so they are looked up.
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
# For -Zbuild-std, which stable compilers do not accept otherwise.
echo "RUSTC_BOOTSTRAP=1"
