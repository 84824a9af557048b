#!/bin/sh
# Runs the conformance suite of the Model Context Protocol against /mcp of a server of its own, for both revisions.
#
#   tools/mcp-conformance.sh PROGRAM
#
# The suite and its Node.js are installed in target/mcp-conformance. tests/mcp-conformance has one list for each revision of what
# does not pass, with the reasons. The script fails if anything else fails, and if something in a list passes.
set -eu

program=$(realpath "$1")
cd "$(dirname "$0")/.."
from=$PWD/tests/mcp-conformance
mkdir -p target/mcp-conformance
cp "$from/package.json" "$from/package-lock.json" target/mcp-conformance
cd target/mcp-conformance
npm ci --silent --no-audit --no-fund

folder=$(mktemp -d)
trap 'kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; rm -rf "$folder"' EXIT
"$program" serve --quiet --listen 127.0.0.1:0 --speed 1 --data "$folder/data" >"$folder/address" &
server=$!
tries=0
until address=$(sed -n 's/^listening on //p' "$folder/address") && [ -n "$address" ]; do
    tries=$((tries + 1))
    if [ "$tries" -gt 200 ] || ! kill -0 "$server"; then
        echo "the server did not start" >&2
        exit 1
    fi
    sleep 0.1
done
suite=node_modules/@modelcontextprotocol/conformance/dist/index.js
for revision in 2025-11-25 2026-07-28; do
    node_modules/.bin/node $suite server --url "$address/mcp" --requirements $revision \
        --expected-failures "$from/$revision.yml" >"$folder/log" || { cat "$folder/log" >&2; exit 1; }
    sed -n '/=== SUMMARY/,$p' "$folder/log"
done
