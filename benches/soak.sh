#!/bin/sh
# The long run: 2,000 requests a second of 1 to 5,000 bytes through the bridge on a stock mGBA's window, with memory and
# frame rate watched. Ten minutes are the measure; they are written to docs/performance/soak.json and into the page.
#
# usage: benches/soak.sh      environment: MINUTES (10)
set -eu
cd "$(dirname "$0")/.."
figures=target/release/framewire-figures
if [ "${MINUTES:-10}" != 10 ]; then
    exec "$figures" soak --minutes "$MINUTES"
fi
exec "$figures" soak --json docs/performance/soak.json --page docs/performance.md
