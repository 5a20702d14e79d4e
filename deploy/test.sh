#!/usr/bin/env bash
# Checks everything that must hold before a change is merged: installs missing packages, checks the formatting, builds,
# and runs the tests. One of the tests checks the layers. At the end it prints the minutes of each step.
#
#   deploy/test.sh [--preset NAME] [--label REGEX] [--quick] [--tidy] [--tidy-product] [--engine-alone] [--fuzz]
#                  [--no-install] [-j JOBS]
#
#   --preset NAME   build preset (default: release); asan and tsan build with sanitizers
#   --label REGEX   runs only tests with this label: unit, integration, crash, attack, model, install, packages or long.
#                   Without this flag, all run but those of packages and the long ones
#   --quick         runs only the unit tests, and builds only them and what they need
#   --tidy          also runs clang-tidy over every .cpp file that the build compiles (takes many minutes)
#   --tidy-product  also runs clang-tidy, but not over the tests, and over several sources at once (deploy/tidy.py)
#   --engine-alone  first builds the engine alone, and runs one test on it
#   --fuzz          builds the fuzz targets, and runs each input of their corpora once
#   --no-install    installs nothing; if a package is missing, the build says which
#   -j JOBS         tests that run at a time (default and maximum: one more than there are cores, because many tests wait)
set -euo pipefail
cd "$(dirname "$0")/.."

usage() { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0"; }

preset=release label= quick=no tidy=no engine_alone=no fuzz=no install=yes jobs=$(($(nproc) + 1))
while [ $# -gt 0 ]; do
  case "$1" in
    --preset) preset=$2; shift ;;
    --label) label=$2; shift ;;
    --quick) label='^unit$' quick=yes ;;
    --tidy) tidy=all ;;
    --tidy-product) tidy=product ;;
    --engine-alone) engine_alone=yes ;;
    --fuzz) fuzz=yes ;;
    --no-install) install=no ;;
    --help | -h) usage; exit 0 ;;
    -j) jobs=$(($2 < jobs ? $2 : jobs)); shift ;;
    *)
      echo "$0: unknown flag $1" >&2
      usage >&2
      exit 2
      ;;
  esac
  shift
done

# step NAME COMMAND ...: runs the command and records its time. A failure ends the script (set -e).
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

# Runs at every end of the script. The last lines of ctest, which say what failed, come last.
finish() {
  [ -z "$step" ] || note "  FAILED"
  [ -z "$summary" ] || printf '\nMinutes of each step:\n%s\n' "$summary"
  cat "$closing"
  rm -f "$closing"
  [ "$mounted" = no ] || umount --lazy /proc
}
trap finish EXIT

[ "$install" = no ] || step "packages" deploy/install-deps.sh

# A bare folder of Debian (debootstrap, chroot) has no /proc, but strace and some tests read it.
if [ ! -e /proc/self ]; then
  if ! mount -t proc proc /proc; then
    echo "$0: the tests need /proc; as root: mount -t proc proc /proc" >&2
    exit 1
  fi
  mounted=yes
fi

check_format() {
  find engine server client tests tls -name '*.[ch]pp' -o -name '*.cu' -o -name '*.cuh' |
    xargs clang-format --dry-run --Werror
  echo "formatting: no difference from .clang-format"
}
step "formatting" check_format

# The engine alone needs only a compiler and CMake. One of its tests shows that what is built so works.
check_engine_alone() {
  cmake -S engine -B build/engine-debug -Wno-dev -DCMAKE_BUILD_TYPE=Debug -DKILOKV_CUDA=OFF
  cmake --build build/engine-debug --parallel "$(nproc)" --target kilokv-engine-bench engine_engine_test
  ctest --test-dir build/engine-debug --output-on-failure --no-tests=error --tests-regex '^engine_engine_test$' </dev/null
}
[ "$engine_alone" = no ] || step "the engine alone" check_engine_alone

if [ "$quick" = yes ]; then
  step "build of the unit tests" deploy/build.sh --preset "$preset" unit_tests
else
  step "build" deploy/build.sh --preset "$preset"
fi

check_tidy() {
  local flags=()
  [ "$tidy" = all ] || flags=(--product)
  deploy/tidy.py "${flags[@]}" "build/$preset"
}
[ "$tidy" = no ] || step "clang-tidy" check_tidy

build_fuzz_targets() {
  cmake --preset fuzz
  cmake --build --preset fuzz --parallel "$(nproc)"
}
if [ "$fuzz" = yes ]; then
  step "build of the fuzz targets" build_fuzz_targets
  step "corpora of the fuzz targets" tests/fuzz/run.sh --no-build --replay
fi

selection=(--label-exclude '^(long|packages)$')
[ -z "$label" ] || selection=(--label-regex "$label")
run_tests() {
  ctest --test-dir "build/$preset" --parallel "$jobs" --output-on-failure --no-tests=error \
    "${selection[@]}" </dev/null |
    sed -u -e "/^[0-9]*% tests passed/,\$w $closing" -e '/^[0-9]*% tests passed/,$d'
}
step "tests" run_tests
