#!/bin/sh
# Builds the archive for Windows: dist/framewire-VERSION-x86_64-windows.zip. Its program can attach to an mGBA window,
# but has no embedded core. The same commit, compilers and packages give the same archive, byte for byte.
#
# DIST_DIR names a folder to use instead of dist.
set -eu

target=x86_64-pc-windows-gnu
cd "$(dirname "$0")/.."
top=$PWD

say() { echo "dist-windows: $*" >&2; }

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
name=framewire-$version-x86_64-windows
dist=${DIST_DIR:-dist}
mkdir -p "$dist"
dist=$(cd "$dist" && pwd)
built=${CARGO_TARGET_DIR:-$top/target}/$target/dist
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

# ---- the program ----

# If this prints settings, they select a Rust compiler that has no standard library for Windows. Cargo then compiles the
# library from its source.
settings=$(tools/rust-windows.sh)
standard=""
[ -z "$settings" ] || standard="-Zbuild-std=std,panic_unwind"
# The paths in the program are replaced, as in tools/program.sh. The linker also writes a time into the program:
# SOURCE_DATE_EPOCH.
RUSTFLAGS="--remap-path-prefix=$top=framewire --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo"
# shellcheck disable=SC2086
env $settings RUSTFLAGS="$RUSTFLAGS" \
    cargo build --profile dist --locked -p framewire --no-default-features --target $target $standard

# ---- the folder ----

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
folder=$work/$name
mkdir -p "$folder/licences"
cp "$built/framewire.exe" LICENSE-MIT LICENSE-APACHE CHANGELOG.md "$folder/"
cp tools/dist/windows.md "$folder/README.md"
# The build script of crates/script wrote framewire.lua during the build. The name of its folder depends on the version
# of Cargo. If there are several such files, this takes the newest.
script=$(ls -t "$built"/build/framewire-script-*/out/framewire.lua "$built"/build/framewire-script/*/out/framewire.lua 2>/dev/null | head -n 1)
cp "$script" "$folder/framewire.lua"
tools/licences.py "$folder/licences/crates.txt" $target -p framewire --no-default-features
library=$(rustc --print sysroot)/share/doc/rust/COPYRIGHT-library.html
[ ! -f "$library" ] || cp "$library" "$folder/licences/rust-standard-library.html"
(cd "$folder" && find . -type f | LC_ALL=C sort | sed 's|^\./||' | xargs -d '\n' sha256sum >"$work/SHA256SUMS")
mv "$work/SHA256SUMS" "$folder/"

# ---- the archive ----

archive=$dist/$name.zip
python3 - "$work" "$name" "$archive" <<'END'
import os
import sys
import time
import zipfile
from pathlib import Path

work, name, archive = sys.argv[1:]
date = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))[:6]
with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
    for path in sorted((Path(work) / name).rglob("*")):
        if path.is_file():
            entry = zipfile.ZipInfo(path.relative_to(work).as_posix(), date)
            entry.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(entry, path.read_bytes(), compresslevel=9)
END
(cd "$dist" && sha256sum "$name.zip" >"$name.sha256")
say "$(wc -c <"$archive") bytes: $archive"
