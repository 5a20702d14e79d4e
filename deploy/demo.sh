#!/usr/bin/env bash
# The bank demo, from nothing: installs what is missing, builds what the demo needs, starts a server on a temporary
# folder, runs the bank against it, kills and restarts the server in the middle, and audits the books.
#
#   deploy/demo.sh [OPTION ...]    options go to `kilokv-bank demo`; see kilokv-bank demo --help
#
# A second run starts at once. Exits 0 only if the audit proves that nothing was lost.
set -euo pipefail
cd "$(dirname "$0")/.."

deploy/install-deps.sh build
deploy/build.sh kilokvd kilokv kilokv-bank
exec build/release/bin/kilokv-bank demo --server build/release/bin/kilokvd "$@"
