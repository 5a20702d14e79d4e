#!/usr/bin/env bash
# Runs the fuzz targets of this folder on their corpora, which are below corpus/. Needs clang.
#
#   tests/fuzz/run.sh [--no-build] --replay [TARGET ...]             runs each input of the corpora once
#   tests/fuzz/run.sh [--no-build] --seconds N [--seed S] [TARGET ...]   fuzzes each target for N seconds (seed: 1)
#   tests/fuzz/run.sh [--no-build] --merge FOLDER [TARGET ...]       takes new inputs of FOLDER/TARGET into the corpora
#
# Without TARGET: all targets. It builds them first, with the preset fuzz. That preset compiles fast, because it does not
# optimise. --seconds and --merge build with -O1, which runs fast; --no-build runs what was built last. The script prints
# one line for each target. It keeps what it finds: new inputs in build/fuzz/found/TARGET, for --merge, and inputs that
# fail in build/fuzz/failed. The exit code is 1 if an input fails, or if a corpus to replay is empty or missing.
set -euo pipefail
cd "$(dirname "$0")/../.."

usage() { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0"; }

mode= build=yes seconds=0 seed=1 from= targets=()
while [ $# -gt 0 ]; do
  case "$1" in
    --replay) mode=replay ;;
    --seconds) mode=fuzz seconds=$2; shift ;;
    --seed) seed=$2; shift ;;
    --merge) mode=merge from=$2; shift ;;
    --no-build) build=no ;;
    --help | -h) usage; exit 0 ;;
    -*) echo "$0: unknown flag $1" >&2; usage >&2; exit 2 ;;
    *) targets+=("$1") ;;
  esac
  shift
done
if [ -z "$mode" ]; then
  usage >&2
  exit 2
fi
if [ ${#targets[@]} -eq 0 ]; then
  for source in tests/fuzz/fuzz_*.cpp; do
    name=${source##*/fuzz_}
    targets+=("${name%.cpp}")
  done
fi

if [ "$build" = yes ]; then
  flags=()
  [ "$mode" = replay ] || flags=(-DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -gline-tables-only -DNDEBUG")
  cmake --preset fuzz "${flags[@]}" >/dev/null
  cmake --build --preset fuzz --parallel "$(nproc)"
fi

# Some targets write files for decoders that read files. In memory that is faster.
[ ! -w /dev/shm ] || export TMPDIR=/dev/shm
failed=build/fuzz/failed
mkdir -p "$failed"
# Short inputs run fast. Two decoders have branches for more bytes, so their targets add bytes to the input: wal_check
# puts up to a block of 32 KiB before it, and long_messages makes it longer than 128 KiB. What needs more bytes of its
# own is out of reach, such as a list of 131,072 keys, or a message above 4 MiB. An input that takes 25 s, or 2 GiB,
# fails.
bytes_max=4096
code=0

# run TARGET FLAG ...: prints one line of the target's run.
run() {
  local target=$1 log=build/fuzz/failed/$1.log found=build/fuzz/found/$1 rc=0 leaks=1
  shift
  # gRPC's threads free memory after the input has ended. So libFuzzer looks for leaks only at the end of the process.
  [ "$target" != requests ] || leaks=0
  mkdir -p "$found"
  [ "$mode" = replay ] || mkdir -p "tests/fuzz/corpus/$target"
  build/fuzz/tests/bin/fuzz_"$target" -max_len=$bytes_max -timeout=25 -rss_limit_mb=2048 -detect_leaks=$leaks \
    -artifact_prefix="$failed/$target-" "$@" >"$log" 2>&1 || rc=$?
  local runs coverage
  runs=$(sed -n 's/.*Done \([0-9]*\) runs in \([0-9]*\) second.*/\1 runs in \2 s/p' "$log" | tail -n 1)
  coverage=$(sed -n 's/.*cov: \([0-9]*\) ft: \([0-9]*\) corp.*/coverage \1, features \2/p' "$log" | tail -n 1)
  if [ $rc -eq 0 ]; then
    printf '%-17s %s, %s, no finding\n' "$target" "${runs:-done}" "$coverage"
  else
    code=1
    printf '%-17s FINDING: %s\n' "$target" "$log"
    grep -m 3 -E 'check failed|ERROR:|runtime error|Test unit written' "$log" || tail -n 20 "$log"
  fi
}

for target in "${targets[@]}"; do
  corpus=tests/fuzz/corpus/$target
  case $mode in
    replay)
      if [ -z "$(find "$corpus" -type f -print -quit 2>/dev/null)" ]; then
        code=1
        printf '%-17s NO CORPUS: %s is empty or missing\n' "$target" "$corpus"
        continue
      fi
      run "$target" -runs=0 "$corpus"
      ;;
    fuzz) run "$target" -seed="$seed" -max_total_time="$seconds" "build/fuzz/found/$target" "$corpus" ;;
    merge)
      [ ! -d "$from/$target" ] || run "$target" -merge=1 "$corpus" "$from/$target"
      echo "$corpus: $(find "$corpus" -type f | wc -l) files, $(du -sb "$corpus" | cut -f1) bytes"
      ;;
  esac
done
exit $code
