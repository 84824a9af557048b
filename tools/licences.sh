#!/bin/sh
# Collects the licences of all code in a program or library for Linux, in the folder LICENCES.
#
#     tools/licences.sh LICENCES OPTION...    the options choose packages, as for cargo build: -p framewire
set -eu
folder=$(realpath "$1")
shift
cd "$(dirname "$0")/.."

libmgba=$(tools/libmgba.sh)
cp "$libmgba"/licences/* "$folder/"
tools/licences.py "$folder/crates.txt" x86_64-unknown-linux-gnu "$@"
cp tools/dist/SOURCES.md "$folder/"
sed -n 's/^/Built /p' "$libmgba/built" >>"$folder/SOURCES.md"
standard=$(rustc --print sysroot)/share/doc/rust/COPYRIGHT-library.html
[ ! -f "$standard" ] || cp "$standard" "$folder/rust-standard-library.html"
# The static libraries in libmgba come from Debian's packages, which contain their licences.
for package in liblua5.4 libpng zlib1g libminizip libinih; do
    copyright=/usr/share/doc/$package-dev/copyright
    [ -f "$copyright" ] || { echo "licences: $copyright, the licence of a library in libmgba, is missing" >&2; exit 1; }
    cp "$copyright" "$folder/$package.txt"
done
