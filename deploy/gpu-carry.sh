#!/usr/bin/env bash
# Collects in one folder what a machine with a GPU needs to run gpu-check.sh: the programs, without their debug
# information, and the script. Apart from these, that machine needs only the driver, bash, coreutils, grep and sed.
#
#   deploy/gpu-carry.sh [--build DIR] [--to DIR]
#
#   --build DIR   build folder of the commit that is checked out, built with nvcc (default: build/release)
#   --to DIR      folder for the files (default: build/gpu-carry); replaces the files of an earlier call, which the
#                 file `carried` lists
#
# Then run on that machine:
#
#   build/gpu-carry/gpu-check.sh
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
}

build=build/release to=build/gpu-carry
while [ $# -gt 0 ]; do
  case "$1" in
    --help | -h) usage; exit 0 ;;
    --build | --to) if [ $# -lt 2 ]; then usage >&2; exit 2; fi ;;
    *) echo "$0: unknown flag $1" >&2; usage >&2; exit 2 ;;
  esac
  case "$1" in
    --build) build=$2 ;;
    --to) to=$2 ;;
  esac
  shift 2
done

programs=(bin/kilokv-engine-bench bin/kilokv-roofline bin/kilokv-cluster-check tests/bin/engine_random_batch_test
  tests/bin/engine_any_order_test tests/bin/engine_read_set_test tests/bin/engine_device_test)
for program in "${programs[@]}"; do
  if [ ! -x "$build/$program" ]; then
    echo "$0: $build/$program is missing; deploy/build.sh makes it on a machine with nvcc" >&2
    exit 1
  fi
done

# Refuses a build of another commit, because its figures would be taken for those of this commit.
version=$("$build/bin/kilokv-engine-bench" --version)
commit=$(git describe --always --abbrev=12 --dirty --exclude='*' 2>/dev/null) || commit=''
if [ -z "$commit" ]; then
  echo "$0: this folder is not a checkout, so the commit is not compared: carrying $version" >&2
elif [[ $version != *"commit $commit)" ]]; then
  echo "$0: $build is stale: $version, and the checkout is at $commit; deploy/build.sh builds it again" >&2
  exit 1
fi

mkdir -p "$to"
if [ -f "$to/carried" ]; then
  while read -r file; do rm -f "$to/${file##*/}"; done <"$to/carried"
fi
printf '%s\n' "${programs[@]##*/}" gpu-check.sh >"$to/carried"
for program in "${programs[@]}"; do strip --strip-all -o "$to/${program##*/}" "$build/$program"; done
cp deploy/gpu-check.sh "$to/"
du -sh "$to"
