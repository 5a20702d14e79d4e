#!/usr/bin/env bash
# Runs a program of client/node with Node, and says what is missing if there is no Node or its packages are not there.
#
#   tests/node/run.sh PROGRAM [ARGUMENT ...]
set -euo pipefail
cd "$(dirname "$0")/../../client/node"

for program in node npm; do
  if ! command -v "$program" >/dev/null; then
    echo "$0: there is no $program: deploy/install-deps.sh installs Node 18 and npm" >&2
    exit 1
  fi
done
if [ ! -d node_modules ]; then
  echo "$0: the packages of the Node client are missing: npm ci --prefix client/node" >&2
  exit 1
fi
exec node "$@"
