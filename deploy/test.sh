#!/usr/bin/env bash
# Everything that has to hold before a change goes in: installs what is missing, checks the formatting, builds, and runs
# the tests (the check of the layers is one of them). At the end it prints the minutes of each step.
#
#   deploy/test.sh [--preset NAME] [--label REGEX] [--quick] [--tidy] [--sanitize] [--no-install] [-j JOBS]
#
#   --preset NAME   build preset (default: release); asan and tsan for the sanitizers
#   --label REGEX   only tests with such a label: unit, integration, crash, model
#   --quick         only the unit tests; builds only them and what they need
#   --tidy          clang-tidy over the engine and the server's core, too (minutes)
#   --sanitize      first the engine alone and the server's core with their tests, under the preset asan
#   --no-install    installs nothing: the packages are there, or the build says what is missing
#   -j JOBS         tests at a time (default, and at most: the number of cores)
set -euo pipefail
cd "$(dirname "$0")/.."

preset=release label= quick=no tidy=no sanitize=no install=yes jobs=$(nproc)
while [ $# -gt 0 ]; do
  case "$1" in
    --preset) preset=$2; shift ;;
    --label) label=$2; shift ;;
    --quick) label='^unit$' quick=yes ;;
    --tidy) tidy=yes ;;
    --sanitize) sanitize=yes ;;
    --no-install) install=no ;;
    -j) jobs=$(($2 < jobs ? $2 : jobs)); shift ;;
    *)
      echo "$0: unknown flag $1" >&2
      sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
      exit 2
      ;;
  esac
  shift
done

# step NAME COMMAND ...: runs the command and keeps the time. A failure ends the script, as set -e has it.
summary= step= began=0 mounted=no
closing=$(mktemp)
step() {
  step=$1 began=$SECONDS
  shift
  "$@"
  note ""
  step=
}

note() {
  local tenths=$(((SECONDS - began + 3) / 6))
  summary+=$(printf '%6d.%d min  %s%s' $((tenths / 10)) $((tenths % 10)) "$step" "$1")$'\n'
}

# Whatever ends the script. The closing lines of ctest, which say what failed, are the last ones.
finish() {
  [ -z "$step" ] || note "  FAILED"
  [ -z "$summary" ] || printf '\nMinutes of each step:\n%s\n' "$summary"
  cat "$closing"
  rm -f "$closing"
  [ "$mounted" = no ] || umount --lazy /proc
}
trap finish EXIT

[ "$install" = no ] || step "packages" deploy/install-deps.sh

# A bare folder of Debian (debootstrap, chroot) has none; strace looks into it, and so do some tests.
if [ ! -e /proc/self ]; then
  if ! mount -t proc proc /proc; then
    echo "$0: the tests need /proc; as root: mount -t proc proc /proc" >&2
    exit 1
  fi
  mounted=yes
fi

check_format() {
  find engine server client tests -name '*.[ch]pp' -o -name '*.cu' -o -name '*.cuh' |
    xargs clang-format --dry-run --Werror
  echo "formatting: as .clang-format says"
}
step "formatting" check_format

# Two builds compile much of the engine alike: the second finds it, wherever it lies.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1

# The engine alone needs a compiler and CMake, and nothing else. The same tests run without sanitizers, and at their
# full length, after the whole build.
build_engine_alone() {
  cmake -S engine --preset asan -B build/engine-alone -Wno-dev
  cmake --build build/engine-alone --parallel "$(nproc)"
}
test_engine_alone() {
  ctest --test-dir build/engine-alone --parallel "$jobs" --output-on-failure --no-tests=error </dev/null
}
test_core() {
  ctest --test-dir build/asan --output-on-failure --no-tests=error --tests-regex '^core_test$' </dev/null
}
if [ "$sanitize" = yes ]; then
  step "build of the engine alone, asan" build_engine_alone
  step "tests of the engine alone, asan" test_engine_alone
  step "build of the server's core, asan" deploy/build.sh --preset asan core_test
  step "tests of the server's core, asan" test_core
fi

if [ "$quick" = yes ]; then
  step "build of the unit tests" deploy/build.sh --preset "$preset" unit_tests
else
  step "build" deploy/build.sh --preset "$preset"
fi

# clang cannot read the precompiled headers of GCC: it reads the headers that each source includes.
check_tidy() {
  mkdir -p "build/$preset/tidy"
  sed 's| -Winvalid-pch -include [^ ]*/cmake_pch\.hxx||' "build/$preset/compile_commands.json" \
    >"build/$preset/tidy/compile_commands.json"
  find engine server/core -name '*.cpp' | sort |
    xargs -n 4 -P "$(nproc)" clang-tidy -p "build/$preset/tidy" --quiet --warnings-as-errors='*' 2>/dev/null
  echo "clang-tidy: clean"
}
[ "$tidy" = no ] || step "clang-tidy" check_tidy

run_tests() {
  ctest --test-dir "build/$preset" --parallel "$jobs" --output-on-failure ${label:+--label-regex "$label"} </dev/null |
    sed -u -e "/^[0-9]*% tests passed/,\$w $closing" -e '/^[0-9]*% tests passed/,$d'
}
step "tests" run_tests
