#!/bin/sh
# Builds the archive for Linux: dist/framewire-VERSION-x86_64-linux.tar.gz. Its program needs only glibc 2.28 or newer and
# libgcc_s. The same commit, compilers and packages give the same archive, byte for byte, in any folder. Also builds, from the
# same program, a bundle for MCP clients (.mcpb), and the bundle's entry for the MCP registry (server.json).
#
# DIST_DIR names a folder to use instead of dist. CARGO_TARGET_DIR is used as in any other build.
set -eu

cd "$(dirname "$0")/.."

say() { echo "dist: $*" >&2; }
die() { say "$@"; exit 1; }

[ "$(uname -sm)" = "Linux x86_64" ] || die "this is $(uname -sm); the archive can be built only on Linux x86_64"
for tool in python3 tar gzip sha256sum git; do
    command -v $tool >/dev/null || die "the program $tool is missing; install it (Debian: apt install python3-venv git)"
done

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
name=framewire-$version-x86_64-linux
dist=${DIST_DIR:-dist}
mkdir -p "$dist"
dist=$(cd "$dist" && pwd)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

# ---- the program ----

program=$(tools/program.sh)

# ---- the folder ----

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
folder=$work/$name
mkdir -p "$folder/man" "$folder/completions" "$folder/licences"
cp "$program" "$folder/framewire"
cp LICENSE-MIT LICENSE-APACHE CHANGELOG.md "$folder/"
cp tools/dist/README.md "$folder/"
"$program" script --output "$folder/framewire.lua" 2>/dev/null
"$program" man "$folder/man"
for shell in bash:framewire.bash zsh:_framewire fish:framewire.fish elvish:framewire.elv powershell:framewire.ps1; do
    "$program" completions "${shell%%:*}" >"$folder/completions/${shell#*:}"
done

tools/licences.sh "$folder/licences" -p framewire

# ---- the archive ----

find "$folder" -type d -exec chmod 755 {} +
find "$folder" -type f -exec chmod 644 {} +
chmod 755 "$folder/framewire"
(cd "$folder" && find . -type f ! -name SHA256SUMS | LC_ALL=C sort | sed 's|^\./||' | xargs -d '\n' sha256sum >SHA256SUMS)
tar -C "$work" --format=ustar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -cf - "$name" |
    gzip -n -9 >"$dist/$name.tar.gz"
(cd "$dist" && sha256sum "$name.tar.gz" >"$name.sha256")
say "$(wc -c <"$dist/$name.tar.gz") bytes: $dist/$name.tar.gz"

# ---- the bundle for MCP clients ----

tools/mcpb.py "$folder" "$version" "$dist/$name.mcpb"
say "$(wc -c <"$dist/$name.mcpb") bytes: $dist/$name.mcpb"
