#!/usr/bin/env bash
# Everything that has to hold before a change goes in: installs what is missing, checks the formatting, builds, and runs
# the tests (the check of the layers is one of them).
#
#   deploy/test.sh [--preset NAME] [--label REGEX] [--quick] [--tidy] [--sanitize] [-j JOBS]
#
#   --preset NAME   build preset (default: release); asan and tsan for the sanitizers
#   --label REGEX   only tests with such a label: unit, integration, crash, model
#   --quick         only the unit tests
#   --tidy          clang-tidy over the engine and the server's core, too (minutes)
#   --sanitize      first the engine alone and the server's core with their tests, under the preset asan
#   -j JOBS         tests at a time (default, and at most: the number of cores)
set -euo pipefail
cd "$(dirname "$0")/.."

preset=release label= tidy=no sanitize=no jobs=$(nproc)
while [ $# -gt 0 ]; do
  case "$1" in
    --preset) preset=$2; shift ;;
    --label) label=$2; shift ;;
    --quick) label=unit ;;
    --tidy) tidy=yes ;;
    --sanitize) sanitize=yes ;;
    -j) jobs=$(($2 < jobs ? $2 : jobs)); shift ;;
    *)
      echo "$0: unknown flag $1" >&2
      sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
      exit 2
      ;;
  esac
  shift
done

deploy/install-deps.sh

# A bare folder of Debian (debootstrap, chroot) has none; strace looks into it, and so do some tests.
if [ ! -e /proc/self ]; then
  if ! mount -t proc proc /proc; then
    echo "$0: the tests need /proc; as root: mount -t proc proc /proc" >&2
    exit 1
  fi
  trap 'umount --lazy /proc' EXIT
fi

find engine server client tests -name '*.[ch]pp' -o -name '*.cu' -o -name '*.cuh' |
  xargs clang-format --dry-run --Werror
echo "formatting: as .clang-format says"

# Two builds compile much of the engine alike: the second finds it, wherever it lies.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1

# The engine alone needs a compiler and CMake, and nothing else. The same tests run without sanitizers, and at their
# full length, behind the whole build.
if [ "$sanitize" = yes ]; then
  cmake -S engine --preset asan -B build/engine-alone -Wno-dev
  cmake --build build/engine-alone --parallel "$(nproc)"
  ctest --test-dir build/engine-alone --parallel "$jobs" --output-on-failure --no-tests=error </dev/null
  deploy/build.sh --preset asan core_test
  ctest --test-dir build/asan --output-on-failure --no-tests=error --tests-regex '^core_test$' </dev/null
fi

deploy/build.sh --preset "$preset"

if [ "$tidy" = yes ]; then
  find engine server/core -name '*.cpp' | sort |
    xargs -n 4 -P "$(nproc)" clang-tidy -p "build/$preset" --quiet --warnings-as-errors='*' 2>/dev/null
  echo "clang-tidy: clean"
fi

ctest --test-dir "build/$preset" --parallel "$jobs" --output-on-failure ${label:+--label-regex "$label"} </dev/null
