#!/bin/sh
# Runs Schemathesis (https://schemathesis.io) with the OpenAPI document against a server of its own on the demo game.
# Streams without an end are left out: it would wait for theirs.
#
#   tools/schemathesis.sh PROGRAM [ARGUMENTS OF st run]
#
# MAX_TIME is its time in seconds, 120 unless set. Without Schemathesis it says so and does nothing.
set -eu

program=$1
shift
if ! command -v st >/dev/null; then
    echo "skipped: no Schemathesis here; pip install schemathesis" >&2
    exit 0
fi
folder=$(mktemp -d)
trap 'kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; rm -rf "$folder"' EXIT
mkdir "$folder/files"
"$program" serve --quiet --listen 127.0.0.1:0 --speed 1 --files "$folder/files" >"$folder/address" &
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
config=$(cd "$(dirname "$0")" && pwd)/schemathesis.toml
cd "$folder" # it leaves its memory where it runs
st --config-file "$config" run "$address/openapi.json" --max-time "${MAX_TIME:-120}" --request-timeout 20 \
    --exclude-path /v1/events --exclude-path /v1/watch --exclude-path /v1/ws \
    --exclude-path /v1/video --exclude-path /v1/video.mjpeg --exclude-path /v1/audio \
    --checks not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance \
    "$@"
