#!/usr/bin/env bash
# Runs the tests of the console, and says what is missing if they cannot run.
#
#   tests/console/run.sh [unit|browser]
#
# $KILOKV_BIN_DIR names the folder of the programs. $KILOKV_CHROMIUM names the browser; default: chromium. If
# $KILOKV_SCREENSHOTS is set, the tests write a picture of each view to this folder.
set -euo pipefail
cd "$(dirname "$0")"

for program in node npm; do
  if ! command -v "$program" >/dev/null; then
    echo "$0: there is no $program: deploy/install-deps.sh installs Node 18 and npm" >&2
    exit 1
  fi
done
if [ ! -d node_modules ]; then
  echo "$0: the packages of the tests are missing: npm ci --prefix tests/console" >&2
  exit 1
fi
if [ "${1:-}" != unit ] && ! command -v "${KILOKV_CHROMIUM:-chromium}" >/dev/null; then
  echo "$0: there is no browser: deploy/install-deps.sh installs chromium" >&2
  exit 1
fi
exec node run.js "$@"
