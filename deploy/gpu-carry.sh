#!/usr/bin/env bash
# Gathers what a machine with a GPU needs to run gpu-check.sh, in one folder: the programs, without their debug
# information, and the script. Nothing else has to be there but the driver, bash, coreutils, grep and sed.
#
#   deploy/gpu-carry.sh [--build DIR] [--to DIR]
#
#   --build DIR   a build folder (default: build/release), made where nvcc was found
#   --to DIR      default: build/gpu-carry; what is there is replaced
#
#   build/gpu-carry/gpu-check.sh     on that machine
set -euo pipefail
cd "$(dirname "$0")/.."

build=build/release to=build/gpu-carry
while [ $# -gt 0 ]; do
  case "$1" in
    --build) build=$2; shift ;;
    --to) to=$2; shift ;;
    *)
      sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
      exit 2
      ;;
  esac
  shift
done

programs=(bin/kilokv-engine-bench bin/kilokv-roofline tests/bin/engine_random_batch_test
  tests/bin/engine_any_order_test tests/bin/engine_read_set_test tests/bin/engine_device_test)
for program in "${programs[@]}"; do
  if [ ! -x "$build/$program" ]; then
    echo "$0: no $build/$program; deploy/build.sh makes it, where nvcc is found" >&2
    exit 1
  fi
done

mkdir -p "$to"
for program in "${programs[@]}"; do strip --strip-all -o "$to/${program##*/}" "$build/$program"; done
cp deploy/gpu-check.sh "$to/"
du -sh "$to"
