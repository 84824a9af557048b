#!/bin/sh
# Runs the conformance suite of the Model Context Protocol for two revisions of the protocol, on /mcp of two servers:
# PROGRAM, which is framewire, and FIXTURES, the example mcp_conformance, which has the tools, prompts and resources
# that the suite calls by name.
#
#   tools/mcp-conformance.sh PROGRAM FIXTURES
#
# The script first installs the suite and its Node.js in target/mcp-conformance, if necessary. For each server and
# revision, tests/mcp-conformance has a list of the scenarios that do not pass, with the reasons. The script fails if
# another scenario fails, and also if a listed scenario passes.
set -eu

program=$(realpath "$1")
fixtures=$(realpath "$2")
cd "$(dirname "$0")/.."
from=$PWD/tests/mcp-conformance
mkdir -p target/mcp-conformance
cd target/mcp-conformance
wanted=$(cksum <"$from/package-lock.json")
if [ "$(cat installed 2>/dev/null)" != "$wanted" ]; then
    cp "$from/package.json" "$from/package-lock.json" .
    npm ci --silent --no-audit --no-fund
    echo "$wanted" >installed
fi

folder=$(mktemp -d)
server=
stop() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    [ -z "$server" ] || wait "$server" 2>/dev/null || true
    server=
}
trap 'stop; rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM

# check NAME COMMAND...: starts a server, which prints its address, and runs the suite with the lists of this name.
check() {
    name=$1
    shift
    "$@" >"$folder/address" 2>"$folder/errors" &
    server=$!
    tries=0
    until address=$(sed -n 's/^listening on //p' "$folder/address") && [ -n "$address" ]; do
        tries=$((tries + 1))
        if [ "$tries" -gt 200 ] || ! kill -0 "$server"; then
            cat "$folder/errors" >&2
            echo "the server did not start: $*" >&2
            exit 1
        fi
        sleep 0.1
    done
    suite=node_modules/@modelcontextprotocol/conformance/dist/index.js
    for revision in 2025-11-25 2026-07-28; do
        echo "=== $name, $revision"
        node_modules/.bin/node $suite server --url "$address/mcp" --requirements $revision \
            --expected-failures "$from/$name-$revision.yml" >"$folder/log" || { cat "$folder/log" >&2; exit 1; }
        sed -n '/=== SUMMARY/,$p' "$folder/log" | grep -e '^✗' -e '^Total'
    done
    stop
    # The server must log nothing: it does not log invalid requests. It does log a shutdown that takes too long, so this
    # also checks that streams whose clients have left do not delay the shutdown.
    if [ -s "$folder/errors" ]; then
        cat "$folder/errors" >&2
        exit 1
    fi
}

check fixtures "$fixtures"
check program "$program" serve --quiet --listen 127.0.0.1:0 --speed 1 --data "$folder/data"
