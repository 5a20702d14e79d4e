#!/usr/bin/env bash
# Everything to run on a machine with a GPU, which needs a driver, bash, coreutils, grep and sed: what the device can
# do at most, whether the engine is right on it, and how fast it is there and on the CPU.
#
#   deploy/gpu-check.sh [--quick] [--parts LIST] [--device cuda|emulated] [--bin DIR] [--out DIR] [--budget SECONDS]
#
#   --quick           a short form of everything
#   --parts LIST      of checks,figures,rates (default: all): is it right; the strategies in the figures of the papers,
#                     and a device's limits; how many transactions a second, there and on the CPU
#   --device NAME     cuda (default), or emulated: a rehearsal where there is no GPU
#   --bin DIR         the programs (default: beside this script, else build/gpu-carry, else build/release/bin); the
#                     tests are looked for there and in DIR/../tests/bin
#   --out DIR         for summary.md, report.json, compare-*.json and raw.log (default: $OUT, else build/gpu-check)
#   --budget SECONDS  of all; a step that it does not suffice for is cut, and listed so (default 1500; 100 with --quick)
#
# Exit codes: 0 every check passed; 1 a check failed, or was cut; 2 wrong usage, or a program is missing.
set -euo pipefail

usage() {
  sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
}

command_line="$0 $*"
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/.." && pwd)
quick=no parts=checks,figures,rates device=cuda bin='' out=${OUT:-} budget=''
while [ $# -gt 0 ]; do
  case "$1" in
    --quick) quick=yes; shift; continue ;;
    --help | -h) usage; exit 0 ;;
    --parts | --device | --bin | --out | --budget) ;;
    *) echo "$0: unknown flag $1" >&2; usage >&2; exit 2 ;;
  esac
  if [ $# -lt 2 ]; then usage >&2; exit 2; fi
  case "$1" in
    --parts) parts=$2 ;;
    --device) device=$2 ;;
    --bin) bin=$2 ;;
    --out) out=$2 ;;
    --budget) budget=$2 ;;
  esac
  shift 2
done
part='(checks|figures|rates)'
if [[ ! $device =~ ^(cuda|emulated)$ || ! ${budget:-1} =~ ^[0-9]+$ || ! $parts =~ ^$part(,$part)*$ ]]; then
  echo "$0: --device $device --parts $parts${budget:+ --budget $budget}: not one of these" >&2
  usage >&2
  exit 2
fi

if [ "$quick" = yes ]; then
  chains=50 any_order_chains=20 verify_batches=3 verify_large=4096 keys=20000 duration=30ms warmup=2
  sizes=(1024 8192) thetas=(0.5 1.2) large_accounts=100000
  compare=(--batch 1024 --duration 5ms --verify 1)
  prstm=(--workloads bank-semantic --semantic-shares 0,1 --records-per-lock 1) kilo=(--workloads ht-h)
  kilo+=(--concurrency-limits 0,64) local=(--workloads local-ht --sizes 16) workloads=(--workloads bank,ht-h)
  contention=(--operations 1 --update-shares 0.5 --thetas 0.99)
  roofline=(--bytes 268435456 --repetitions 3)
  validate=(--reads 2000 --records 4000 --repeats 1 --duration 1ms)
else
  chains=1000 any_order_chains=300 verify_batches=10 verify_large=65536 keys=500000 duration=250ms warmup=6
  sizes=(1024 16384 262144 1000000) thetas=(0.5 0.6 0.7 0.8 0.9 1.0 1.1 1.2) large_accounts=2500000
  compare=(--batch 16384 --duration 50ms --verify 1)
  prstm=() kilo=() local=() contention=(--operations 1,8 --update-shares 0,0.5,1 --thetas 0,0.99,1.2,10) workloads=()
  roofline=(--bytes 4294967296 --repetitions 7)
  validate=(--repeats 5 --duration 50ms)
fi
budget=${budget:-$([ "$quick" = yes ] && echo 100 || echo 1500)}
out=${out:-$root/build/gpu-check}
if [ -z "$bin" ]; then
  for bin in "$here" "$root/build/gpu-carry" "$root/build/release/bin"; do
    if [ -x "$bin/kilokv-engine-bench" ]; then break; fi
  done
fi

# Prints the path of a program, or nothing.
program() {
  local folder
  for folder in "$bin" "$bin/../tests/bin"; do
    if [ -x "$folder/$1" ]; then
      echo "$folder/$1"
      return
    fi
  done
}

for needed in kilokv-engine-bench engine_random_batch_test engine_any_order_test engine_read_set_test \
  engine_device_test; do
  if [ -z "$(program "$needed")" ]; then
    echo "$0: no $needed in $bin; --bin names the folder" >&2
    exit 2
  fi
done
bench=$(program kilokv-engine-bench)

mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
raw=$out/raw.log
: >"$raw"
steps=() problems=() left=() failed=no
declare -A rate
deadline=$((SECONDS + budget))

json_string() {
  local text=${1//\\/\\\\}
  text=${text//\"/\\\"}
  text=${text//[[:cntrl:]]/ }
  printf '"%s"' "$text"
}

# note NAME KIND STATUS SECONDS REASON COMMAND JSON: one step of the report. KIND: check or measurement. STATUS: passed,
# failed, cut or left out. Only checks decide the exit code, and a measurement that fails.
note() {
  local step
  printf -v step '{"name":%s,"kind":"%s","status":"%s","seconds":%s,"reason":%s,"command":%s,"output":%s}' \
    "$(json_string "$1")" "$2" "$3" "$4" "$(json_string "$5")" "$(json_string "$6")" "${7:-null}"
  steps+=("$step")
  printf '%-10s %6ss  %s%s\n' "$3" "$4" "$1" "${5:+: $5}"
  case "$3" in
    failed) problems+=("$1: failed: $5"); failed=yes ;;
    cut) left+=("$1 (cut: $5)"); if [ "$2" = check ]; then failed=yes; fi ;;
    'left out') left+=("$1 ($5)") ;;
  esac
}

has_part() {
  [[ ,$parts, == *,$1,* ]]
}

leave_out() {
  note "$1" "$2" 'left out' 0 "$3" '' ''
}

# The first lines of what a program said of its failure.
complaint() {
  local text
  text=$(grep -v '^ok ' "$work/err" "$work/out" -h | head -n 3 | cut -c1-300 | tr '\n' ' ')
  echo "exit code $1: $text"
}

# Prints which batches of a document of kilokv-engine-bench did not run on the device; nothing where all of them did.
not_on_device() {
  local text=$1 one batches=none
  while [[ $text =~ \"batches\":([0-9]+)(.*) ]]; do
    batches=${BASH_REMATCH[1]} text=${BASH_REMATCH[2]}
    one=${text%%\"decided_by_thread\"*}  # up to the end of this workload
    if [[ ! $one =~ \"device_reason\":\"([^\"]*)\".*\"device_batches\":([0-9]+) ]]; then break; fi
    if [ "$batches" != "${BASH_REMATCH[2]}" ]; then
      echo "${BASH_REMATCH[2]} of $batches batches ran on the device: ${BASH_REMATCH[1]:-no reason told}"
      return
    fi
    batches=equal
  done
  if [ "$batches" != equal ]; then echo 'the program does not tell where batches ran'; fi
}

# Prints why the engine gave the device up, or did not find it; nothing where it has it.
without_device() {
  if [[ $1 =~ \"execution\":\{\"device\":\"$device\" && ! $1 =~ \"device\":\"cpu\" ]]; then return; fi
  [[ $1 =~ \"device_reason\":\"([^\"]+)\" ]] || true
  echo "the device is not in use: ${BASH_REMATCH[1]:-no reason told}"
}

# step NAME KIND SECONDS_MAX WHERE COMMAND...: runs one step. Its output goes to raw.log, and into the report where it
# is a JSON document. WHERE: device, if every batch has to run there; found, if batches may run there; else any.
step() {
  local name=$1 kind=$2 limit=$3 where=$4
  shift 4
  local remaining=$((deadline - SECONDS)) code=0 begin json='' reason='' status=passed
  json_out=''
  if [ "$remaining" -le 0 ]; then
    note "$name" "$kind" cut 0 'no time was left' "$*" ''
    return
  fi
  if [ "$limit" -gt "$remaining" ]; then limit=$remaining; fi
  begin=$SECONDS
  timeout --kill-after=5 "$limit" "$@" >"$work/out" 2>"$work/err" </dev/null || code=$?
  { printf '== %s\n$ %s\n' "$name" "$*"; cat "$work/out" "$work/err"; printf '== exit code %s\n\n' "$code"; } >>"$raw"
  if [ "$(head -c 1 "$work/out")" = '{' ]; then json=$(<"$work/out"); fi
  case "$code" in
    0) ;;
    124 | 137) status=cut reason="at $limit s" json='' ;;
    *) status=failed reason=$(complaint "$code") json='' ;;
  esac
  if [ "$status" = passed ]; then
    case "$where" in
      device) reason=$(not_on_device "$json") ;;
      found) reason=$(without_device "$json") ;;
    esac
    if [ -n "$reason" ]; then status=failed; fi
  fi
  note "$name" "$kind" "$status" $((SECONDS - begin)) "$reason" "$*" "$json"
  if [ "$status" = passed ]; then json_out=$json; fi
}

# --- what the machine is

facts() {
  gpu='none' driver='none' commit=unknown
  if command -v nvidia-smi >/dev/null; then
    gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1) || gpu=unknown
    driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1) || driver=unknown
    nvidia-smi >>"$raw" 2>&1 || true
  elif [ -r /proc/driver/nvidia/version ]; then
    gpu=unknown driver=$(head -n 1 /proc/driver/nvidia/version)
  fi
  local document
  document=$(timeout 20 "$bench" --keys 2 --batch 1 --batches 1 --json 2>/dev/null) || document=''
  if [[ $document =~ \"commit\":\"([^\"]*)\" ]]; then commit=${BASH_REMATCH[1]}; fi
  processor=unknown
  if [[ $document =~ \"cpu\":\"([^\"]*)\",\"cores\":([0-9]+) ]]; then
    processor="${BASH_REMATCH[1]}, ${BASH_REMATCH[2]} cores"
  fi
  date=$(date -u +%Y-%m-%dT%H:%M:%SZ)
}

print_facts() {
  printf -- '- date: %s\n- GPU: %s\n- driver: %s\n- processor: %s\n- commit: %s\n- command: `%s`\n' \
    "$date" "$gpu" "$driver" "$processor" "$commit" "$command_line"
}

# --- the steps

# Without the device nothing below says anything.
require_device() {
  local text
  if ! text=$("$bench" --device "$device" --strategy ordered --keys 16 --batch 16 --batches 1 2>&1 </dev/null); then
    printf '%s: no batch runs on this device: %s\n' "$0" "$text" >&2
    printf 'On a machine without a GPU, the rehearsal is: %s --device emulated --quick\n' "$0" >&2
    exit 1
  fi
}

measure_roofline() {
  local name='roofline' path
  path=$(program kilokv-roofline)
  if [ "$device" != cuda ]; then
    leave_out "$name" measurement 'there is no GPU to measure'
  elif [ -z "$path" ]; then
    leave_out "$name" measurement "no kilokv-roofline in $bin"
  else
    step "$name" measurement 60 any "$path" "${roofline[@]}" --json
    if [ -n "$json_out" ]; then roofline_text=$(<"$work/err"); fi
  fi
}

check_device_layer() {
  step 'device layer' check 30 any "$(program engine_device_test)"
}

check_random_batches() {
  local path
  path=$(program engine_random_batch_test)
  step "random batches, $chains chains of 10" check 100 any env KILOKV_TEST_DEVICE="$device" \
    KILOKV_TEST_CHAINS="$chains" "$path" ordered_on_the_chosen_device_equals_the_referee
  step "random batches in any order, $any_order_chains chains of 6" check 60 any env KILOKV_TEST_DEVICE="$device" \
    KILOKV_TEST_CHAINS="$any_order_chains" "$(program engine_any_order_test)" on_the_chosen_device
  step 'large stages' check 30 any env KILOKV_TEST_DEVICE="$device" "$(program engine_any_order_test)" \
    large_stages_of_the_chosen_device
}

check_read_sets() {
  step 'large read sets' check 60 any env KILOKV_TEST_DEVICE="$device" "$(program engine_read_set_test)" \
    on_the_chosen_device_is_as_guard_by_guard
}

# The figures 7, 10 and 11 of the validation paper.
measure_read_sets() {
  local lanes
  for lanes in coalesced strided; do
    step "validate, $lanes" measurement 60 any "$bench" validate --device "$device" --lanes "$lanes" "${validate[@]}" \
      --json -
  done
}

check_workloads() {
  local strategy
  step 'verify, all workloads, 64 keys' check 40 device "$bench" --device "$device" --strategy ordered --verify \
    --no-ranges --workload all --keys 64 --batch 1024 --batches "$verify_batches" --json
  step "verify, all workloads, 100k keys, batches of $verify_large" check 60 device "$bench" --device "$device" \
    --strategy ordered --verify --no-ranges --workload all --keys 100000 --batch "$verify_large" --batches 2 --json
  for strategy in prstm lock gpustm kilo local; do
    step "verify, all workloads, 64 keys, $strategy" check 40 device "$bench" --device "$device" \
      --strategy "$strategy" --verify --no-ranges --workload all --keys 64 --batch 1024 --batches "$verify_batches" \
      --json
    step "verify, bank zipf 0.99, 100k keys, batches of $verify_large, $strategy" check 30 device "$bench" \
      --device "$device" --strategy "$strategy" --verify --workload bank --keys 100000 --distribution zipf:0.99 \
      --batch "$verify_large" --batches 2 --json
  done
  step 'verify, all workloads, 64 keys, local, a stage of 8 blocks' check 40 device "$bench" --device "$device" \
    --strategy local --stage-blocks 8 --verify --no-ranges --workload all --keys 64 --batch 4096 \
    --batches "$verify_batches" --json
  step 'verify, all workloads with ranges, auto' check 40 found "$bench" --device "$device" --strategy auto --verify \
    --workload all --keys 1000 --batch 2048 --batches "$verify_batches" --json
}

find_sanitizer() {
  local path
  for path in compute-sanitizer /usr/local/cuda/bin/compute-sanitizer /opt/cuda/bin/compute-sanitizer; do
    if command -v "$path"; then return; fi
  done
}

# Prints why the sanitizer cannot be used, or nothing. There are machines whose devices it does not support.
sanitizer_trouble() {
  local text
  if [ "$device" != cuda ]; then
    echo 'there is no GPU'
  elif [ -z "$1" ]; then
    echo 'it was not found'
  else
    text=$(timeout --kill-after=5 30 "$1" --tool memcheck "$bench" --device cuda --strategy ordered --keys 16 \
      --batch 16 --batches 1 2>&1 </dev/null) || true
    { printf '== compute-sanitizer, tried out\n%s\n\n' "$text"; } >>"$raw"
    if [[ $text == *[Nn]'ot supported'* ]]; then echo 'it does not support this device; raw.log has its words'; fi
  fi
}

# Short runs: the tools slow a kernel down a hundredfold. racecheck sees shared memory; initcheck, reads of what was
# never written.
check_with_sanitizer() {
  local sanitizer trouble tool test
  test=$(program engine_random_batch_test)
  sanitizer=$(find_sanitizer)
  trouble=$(sanitizer_trouble "$sanitizer")
  if [ -n "$trouble" ]; then
    leave_out compute-sanitizer check "$trouble"
    return
  fi
  for tool in memcheck racecheck synccheck initcheck; do
    step "compute-sanitizer $tool, random batches" check 25 any env KILOKV_TEST_DEVICE="$device" \
      KILOKV_TEST_CHAINS=3 "$sanitizer" --tool "$tool" --error-exitcode 9 "$test" \
      ordered_on_the_chosen_device_equals_the_referee
    step "compute-sanitizer $tool, random batches in any order" check 25 any env KILOKV_TEST_DEVICE="$device" \
      KILOKV_TEST_CHAINS=1 "$sanitizer" --tool "$tool" --error-exitcode 9 "$(program engine_any_order_test)" \
      on_the_chosen_device
    step "compute-sanitizer $tool, bank" check 25 any "$sanitizer" --tool "$tool" --error-exitcode 9 "$bench" \
      --device "$device" --strategy ordered --verify --workload bank --keys 1000 --batch 2048 --batches 2
  done
}

strategies=(serial ordered-cpu "ordered-$device" "auto-$device")

# measure TABLE ROW WORKLOAD FLAGS...: one rate for each strategy, into rate[TABLE|ROW|STRATEGY].
measure() {
  local table=$1 row=$2 workload=$3 strategy where=any
  shift 3
  for strategy in "${strategies[@]}"; do
    local on=cpu
    where=any
    case "$strategy" in
      ordered-cpu) ;;
      ordered-*) on=$device where=device ;;
      auto-*) on=$device where=found ;;
    esac
    step "$table, $row, $strategy" measurement 20 "$where" "$bench" --strategy "${strategy%%-*}" --device "$on" \
      --workload "$workload" --warmup "$warmup" --duration "$duration" --json "$@"
    if [[ $json_out =~ \"transactions_per_second\":([0-9]+) ]]; then
      printf -v "rate[$table|$row|$strategy]" '%d.%02d' $((BASH_REMATCH[1] / 1000000)) \
        $((BASH_REMATCH[1] % 1000000 / 10000))
    fi
  done
}

# compare_figures SET SECONDS_MAX FLAGS...: the strategies in a set of figures; a page is made of the document elsewhere
# (kilokv-engine-bench compare --from).
compare_figures() {
  local figures=$1 limit=$2
  shift 2
  step "compare, $figures" measurement "$limit" any "$bench" compare --figures "$figures" --device "$device" \
    --threads 1 --repeats 1 "${compare[@]}" "$@" --json "$out/compare-$figures.json"
}

compare_strategies() {
  compare_figures prstm 150 "${prstm[@]}"
  compare_figures kilo 100 "${kilo[@]}"
  compare_figures local 60 "${local[@]}"
  compare_figures contention 200 "${contention[@]}"
  compare_figures workloads 120 "${workloads[@]}"
}

measure_workloads() {
  local size theta workload
  for size in "${sizes[@]}"; do
    measure "bank, $large_accounts accounts" "batch $size" bank --keys "$large_accounts" --batch "$size"
  done
  for theta in "${thetas[@]}"; do
    measure 'contention, bank' "zipf $theta" bank --keys "$keys" --distribution "zipf:$theta" --batch 16384
  done
  for size in "${sizes[@]}"; do
    measure 'bank uniform' "batch $size" bank --keys "$keys" --batch "$size"
    measure 'bank zipf 0.99' "batch $size" bank --keys "$keys" --distribution zipf:0.99 --batch "$size"
    for workload in hot hot-deposits bank-semantic ycsb-a; do
      measure "$workload" "batch $size" "$workload" --keys "$keys" --batch "$size"
    done
  done
}

# --- the report

print_rates() {
  local table=$1 row strategy
  shift
  printf '\n### %s\n\nMillions of transactions a second.\n\n| |' "$table"
  printf ' %s |' "${strategies[@]}"
  printf '\n| --- |'
  printf ' ---: |%.0s' "${strategies[@]}"
  for row in "$@"; do
    printf '\n| %s |' "$row"
    for strategy in "${strategies[@]}"; do printf ' %s |' "${rate[$table|$row|$strategy]:-missing}"; done
  done
  printf '\n'
}

print_summary() {
  local line table verdict=passed
  if ! has_part checks; then verdict='nothing was checked'; fi
  if [ "$failed" = yes ]; then verdict=FAILED; fi
  printf '# GPU check: %s\n\n' "$verdict"
  print_facts
  printf '\n## Problems\n\n'
  for line in "${problems[@]:-none}"; do printf -- '- %s\n' "$line"; done
  printf '\n## Not done\n\n'
  for line in "${left[@]:-none}"; do printf -- '- %s\n' "$line"; done
  printf '\n## Checks\n\n'
  for line in "${checks[@]:-none: not asked for}"; do printf -- '- %s\n' "$line"; done
  if [ -n "$roofline_text" ]; then printf '\n## What the device can do at most\n\n```\n%s\n```\n' "$roofline_text"; fi
  if ! has_part rates; then return; fi
  printf '\n## Rates\n\n%s keys where nothing else is said, seed 1, %s of execution each, after %s batches.\n' "$keys" \
    "$duration" "$warmup"
  for table in "bank, $large_accounts accounts" 'bank uniform' 'bank zipf 0.99' hot hot-deposits bank-semantic \
    ycsb-a; do
    print_rates "$table" "${sizes[@]/#/batch }"
  done
  print_rates 'contention, bank' "${thetas[@]/#/zipf }"
}

# The checks alone, as lines of the summary.
collect_checks() {
  local one
  checks=()
  for one in "${steps[@]}"; do
    if [[ $one =~ ^\{\"name\":\"([^\"]*)\",\"kind\":\"check\",\"status\":\"([^\"]*)\",\"seconds\":([0-9]+) ]]; then
      checks+=("${BASH_REMATCH[2]}: ${BASH_REMATCH[1]} (${BASH_REMATCH[3]} s)")
    fi
  done
}

print_json() {
  local i
  printf '{"format":"kilokv-gpu-check-1","passed":%s,"date":%s,"gpu":%s,"driver":%s,"processor":%s,"commit":%s' \
    "$([ "$failed" = yes ] && echo false || echo true)" "$(json_string "$date")" "$(json_string "$gpu")" \
    "$(json_string "$driver")" "$(json_string "$processor")" "$(json_string "$commit")"
  printf ',"parts":"%s","command":%s,"device":"%s","quick":%s,"budget_seconds":%s,"steps":[' "$parts" "$(json_string "$command_line")" \
    "$device" "$([ "$quick" = yes ] && echo true || echo false)" "$budget"
  for i in "${!steps[@]}"; do printf '%s%s' "$([ "$i" -gt 0 ] && echo ,)" "${steps[$i]}"; done
  printf ']}\n'
}

facts
print_facts | tee -a "$raw"
require_device
roofline_text=''
if has_part checks; then
  check_device_layer
  check_random_batches
  check_read_sets
  check_workloads
  check_with_sanitizer
fi
if has_part figures; then
  measure_roofline
  measure_read_sets
  compare_strategies
fi
if has_part rates; then measure_workloads; fi

collect_checks
print_summary >"$out/summary.md"
print_json >"$out/report.json"
cat "$out/summary.md"
if [ "$failed" = yes ]; then exit 1; fi
