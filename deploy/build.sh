#!/usr/bin/env bash
# Configures (once) and builds. The programs are then in build/<preset>/bin.
#
#   deploy/build.sh [--preset release] [TARGET ...]    default: everything
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "${1:-}" = --help ] || [ "${1:-}" = -h ]; then
  echo "usage: $0 [--preset release|debug|asan|tsan] [TARGET ...]    default: release, everything"
  exit 0
fi

preset=release
if [ "${1:-}" = --preset ]; then
  preset=$2
  shift 2
fi

# Runs one compiler for each core, but only as many as have about 1.5 GiB of memory each.
jobs=$(nproc)
memory_kib=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo 2>/dev/null || true)
if [ -n "$memory_kib" ] && [ $((memory_kib / 1572864)) -lt "$jobs" ]; then
  jobs=$((memory_kib / 1572864 > 0 ? memory_kib / 1572864 : 1))
fi

if [ ! -f "build/$preset/build.ninja" ]; then
  cmake --preset "$preset" -Wno-dev
fi
if [ $# -eq 0 ]; then
  set -- all
fi
cmake --build "build/$preset" --parallel "$jobs" --target "$@"
