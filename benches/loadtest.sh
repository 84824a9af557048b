#!/bin/sh
# Measures how many requests per second the load tester itself can send from one processor core. The server is an nginx
# that only echoes the parameter `message`. For comparison, wrk sends requests to the same server. Prints tables, and
# writes the load tester's reports, OUT/loadtest-closed.json and OUT/loadtest.json, and the output of wrk,
# OUT/loadtest-wrk.txt.
#
# usage: benches/loadtest.sh [OUT]    OUT is target/bench by default
# environment: SECONDS_EACH (the length of each run; default 5), RATES (of the open loop, in requests per second),
#     CORE (of the load tester and of wrk; default 1), SERVER_CORE (of nginx; default 0)
set -eu
cd "$(dirname "$0")/.."
out=${1:-target/bench}
seconds=${SECONDS_EACH:-5}
rates=${RATES:-50000,75000,100000,125000,150000,175000}
core=${CORE:-1}
server_core=${SERVER_CORE:-0}
framewire=target/release/framewire
for tool in nginx wrk taskset "$framewire"; do
    command -v "$tool" >/dev/null || { echo "$0: needs $tool; apt-get install nginx-light wrk util-linux, cargo build --release" >&2; exit 1; }
done
mkdir -p "$out"
server=
work=$(mktemp -d)
trap 'kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
cat >"$work/nginx.conf" <<CONF
worker_processes 1; daemon off; pid $work/pid; error_log $work/error.log;
events { worker_connections 4096; }
http {
    access_log off; keepalive_requests 1000000000;
    client_body_temp_path $work; proxy_temp_path $work; fastcgi_temp_path $work; uwsgi_temp_path $work; scgi_temp_path $work;
    server { listen 127.0.0.1:18081 backlog=4096; location / { default_type text/plain; return 200 "\$arg_message"; } }
}
CONF
taskset -c "$server_core" nginx -c "$work/nginx.conf" -p "$work" & server=$!
url=http://127.0.0.1:18081/
message=01234567-89ab-4cde-8f01-23456789abcd
tries=0
until wrk -t1 -c1 -d1s "$url?message=$message" >/dev/null 2>&1; do
    tries=$((tries + 1)); [ "$tries" -lt 20 ] || { echo "$0: nginx does not answer; see above" >&2; exit 1; }
done
echo "# wrk -t1 -c64, closed loop, static message, on core $core; nginx, one worker, on core $server_core"
taskset -c "$core" wrk -t1 -c64 -d"${seconds}s" --latency "$url?message=$message" | tee "$out/loadtest-wrk.txt" | grep -E 'Requests/sec|99%'
echo "# framewire bench, closed loop, 64 clients, a new message in each request, replies checked"
taskset -c "$core" "$framewire" bench "$url?message={}" -c 64 -d "${seconds}s" -q --json "$out/loadtest-closed.json" | sed -n '/^| /p;/^- /p' | sed '4,$d'
echo "# framewire bench, open loop, a new message in each request, replies checked"
taskset -c "$core" "$framewire" bench "$url?message={}" -r "$rates" -d "${seconds}s" -q --json "$out/loadtest.json"
