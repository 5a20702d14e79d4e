#!/usr/bin/env bash
# Runs the bank demo from a fresh checkout. Installs missing packages, and builds what the demo needs. The demo starts a
# server on a temporary folder, and runs the bank on it. In the middle it kills and restarts the server. At the end it
# audits the books.
#
#   deploy/demo.sh [OPTION ...]    options of `kilokv-bank demo`; kilokv-bank demo --help lists them
#
# A second run builds nothing, so it starts at once. The exit code is 0 only if the audit proves that nothing was lost.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "${1:-}" = --help ] || [ "${1:-}" = -h ]; then
  sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0"
  exit 0
fi

deploy/install-deps.sh build
deploy/build.sh kilokvd kilokv kilokv-bank
exec build/release/bin/kilokv-bank demo --server build/release/bin/kilokvd "$@"
