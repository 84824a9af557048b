#!/bin/sh
# Builds the program `framewire` for Linux with glibc 2.28 or newer, and prints its path. `make dist` and `make wheel`
# use it. CARGO_TARGET_DIR is used as in any other build.
set -eu

glibc=2.28
target=x86_64-unknown-linux-gnu
cd "$(dirname "$0")/.."
top=$PWD

die() { echo "program: $*" >&2; exit 1; }

[ "$(uname -sm)" = "Linux x86_64" ] || die "this is $(uname -sm); this script works only on Linux x86_64"
command -v objdump >/dev/null || die "the program objdump is missing; install it (Debian: apt install binutils)"

SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
PATH=$(tools/zig.sh):$PATH
export PATH
# The program contains paths of source files, for messages about its own bugs. These options make them independent of
# the folder in which it is built.
sysroot=$(rustc --print sysroot)
RUSTFLAGS="--remap-path-prefix=$top=framewire --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo --remap-path-prefix=$sysroot=rust"
export RUSTFLAGS
cargo zigbuild --profile dist --locked -p framewire --target $target.$glibc >&2
program=${CARGO_TARGET_DIR:-$top/target}/$target/dist/framewire

newest=$(objdump -T "$program" | sed -n 's/.*(\{0,1\}GLIBC_\([0-9.]*\).*/\1/p' | sort -V | tail -n 1)
[ "$(printf '%s\n' "$newest" $glibc | sort -V | tail -n 1)" = $glibc ] ||
    die "the program needs glibc $newest; at most $glibc is allowed"
echo "$program"
