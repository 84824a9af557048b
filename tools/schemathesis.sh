#!/bin/sh
# Starts a server with the demo game, and tests it with Schemathesis (https://schemathesis.io), which generates requests
# from the OpenAPI document. Routes with endless streams are excluded, because Schemathesis would wait for their end.
#
#   tools/schemathesis.sh PROGRAM [ARGUMENTS OF st run]
#
# MAX_TIME is the time limit in seconds, 120 by default. Without Schemathesis, the script prints a message and ends.
set -eu

program=$1
shift
if ! command -v st >/dev/null; then
    echo "skipped: Schemathesis is missing; install it with pip install schemathesis" >&2
    exit 0
fi
server=
folder=$(mktemp -d)
trap 'kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$folder/files"
"$program" serve --quiet --listen 127.0.0.1:0 --speed 1 --files "$folder/files" --data "$folder/data" \
    >"$folder/address" &
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
cd "$folder" # Schemathesis keeps its data in the current folder.
# Only 500, and statuses that the document does not list, are errors of the server. With 501 to 504, it reports what an
# emulator cannot do, or cannot do now.
cat >schemathesis.toml <<'END'
[checks]
not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", 501, 502, 503, 504]
END
st --config-file schemathesis.toml run "$address/openapi.json" --max-time "${MAX_TIME:-120}" --request-timeout 20 \
    --exclude-path /v1/events --exclude-path /v1/watch --exclude-path /v1/ws \
    --exclude-path /v1/video --exclude-path /v1/video.mjpeg --exclude-path /v1/audio \
    --checks not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance \
    "$@"
