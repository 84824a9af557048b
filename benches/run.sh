#!/bin/sh
# The table of figures, on this machine; docs/performance.md says what its lines are. A whole run takes some eight minutes
# and wants a machine that does nothing else. Writes docs/performance/figures.json and the table into the page; with
# QUICK=1, or with ONLY=line,line, it only prints.
#
# usage: benches/run.sh
set -eu
cd "$(dirname "$0")/.."
figures=target/release/framewire-figures
if [ -n "${QUICK:-}${ONLY:-}" ]; then
    exec "$figures" table ${QUICK:+--quick} ${ONLY:+--only "$ONLY"}
fi
exec "$figures" table --json docs/performance/figures.json --page docs/performance.md
