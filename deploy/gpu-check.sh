#!/usr/bin/env bash
# Runs all checks and measurements on a machine with a GPU. The machine needs a driver, bash, coreutils, grep and sed.
# The script measures the limits of the device. It checks that the engine gives right results on it. It measures how
# fast the engine is on the device and on the CPU.
#
#   deploy/gpu-check.sh [--quick] [--parts LIST] [--device cuda|emulated] [--bin DIR] [--out DIR] [--budget SECONDS]
#
#   --quick           runs a short form of every part
#   --parts LIST      parts to run, separated by commas (default: all of them):
#                       checks      compares the results on the device with the referee
#                       sanitizers  runs short checks under compute-sanitizer
#                       figures     compares the strategies, in the figures of their papers
#                       rates       measures transactions a second, on the device and on the CPU
#   --device NAME     cuda (default), or emulated for a rehearsal without a GPU
#   --bin DIR         folder of the programs (default: the folder of this script, else build/gpu-carry, else
#                     build/release/bin); the tests are searched there and in DIR/../tests/bin
#   --out DIR         folder for summary.md, report.json, compare-*.json and raw.log (default: $OUT, else
#                     build/gpu-check)
#   --budget SECONDS  longest time of the whole run (default: 1500; with --quick 100); a step that does not fit is cut,
#                     and the summary lists it
#
# summary.md and report.json are written after every step. So a run that is ended from outside leaves its results so
# far.
#
# Exit codes: 0 every check passed; 1 a check failed or was cut, or a measurement failed; 2 wrong usage, or a program is
# missing; 143 a signal ended the run.
set -euo pipefail

usage() {
  sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
}

command_line="$0 $*"
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/.." && pwd)
quick=no parts=checks,sanitizers,figures,rates device=cuda bin='' out=${OUT:-} budget=''
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
wrong=''
if [[ ! $device =~ ^(cuda|emulated)$ ]]; then wrong="--device $device: it must be cuda or emulated"; fi
if [[ ! ${budget:-1} =~ ^[1-9][0-9]*$ ]]; then wrong="--budget $budget: it must be a number of seconds"; fi
IFS=, read -ra named <<<"$parts"
for part in "${named[@]:-}"; do
  if [[ ! $part =~ ^(checks|sanitizers|figures|rates)$ ]]; then wrong="--parts: no part is called '$part'"; fi
done
if [ -n "$wrong" ]; then
  echo "$0: $wrong" >&2
  usage >&2
  exit 2
fi

if [ "$quick" = yes ]; then
  chains=50 any_order_chains=20 verify_batches=2 verify_stage=2048 verify_large=2048 verify_thousands=2
  keys=20000 duration=10ms warmup=2
  sizes=(1024 4096) thetas=(0.5 1.2) thetas_batch=4096 large_accounts=100000 large_sizes=(8192)
  rows=20000 rows_batch=1024 payers=6000 warehouses=2
  compare=(--batch 1024 --duration 5ms --verify 1)
  prstm=(--workloads bank-semantic --semantic-shares 1 --records-per-lock 1 --keys 4096)
  kilo=(--workloads ht-h --concurrency-limits '0,64')
  local=(--workloads local-ht --sizes 16) workloads=(--workloads 'bank,ht-h' --keys 4096)
  contention=(--operations 1 --update-shares 0.5 --thetas 0.99 --keys 4096)
  roofline_bytes=268435456 roofline_repetitions=3
  validate=(--reads 2000 --records 4000 --repeats 1 --duration 1ms)
else
  chains=1000 any_order_chains=300 verify_batches=10 verify_stage=4096 verify_large=65536 verify_thousands=100
  keys=500000 duration=250ms warmup=6
  sizes=(262144 1000000 16384 1024) thetas=(0.5 1.2 0.8 1.0 0.6 0.7 0.9 1.1) thetas_batch=16384
  large_accounts=2500000 large_sizes=(262144 1000000) rows=10500000 rows_batch=1000000 payers=1920000 warehouses=64
  compare=(--batch 16384 --duration 50ms --verify 1)
  prstm=() kilo=() local=(--sizes '2,4,8,16,32,64,128,256') workloads=()
  contention=(--operations '1,8' --update-shares '0.5,1' --thetas '0,0.99,1.2,10')
  roofline_bytes=4294967296 roofline_repetitions=7
  validate=(--repeats 5 --duration 50ms)
fi
# The most important rows are measured first. The tables are in sorted order.
mapfile -t size_rows < <(printf 'batch %s\n' "${sizes[@]}" | LC_ALL=C sort -k 2 -n)
mapfile -t theta_rows < <(printf 'zipf %s\n' "${thetas[@]}" | LC_ALL=C sort -k 2 -n)
small_bytes=134217728  # as large as the records of 2.5 million accounts
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

# Without one of these, a check of correctness would be left out. A build without nvcc has no kilokv-cluster-check, and
# a rehearsal does not need it.
needs=(kilokv-engine-bench engine_random_batch_test engine_any_order_test engine_read_set_test engine_device_test)
if [ "$device" = cuda ]; then needs+=(kilokv-cluster-check); fi
for needed in "${needs[@]}"; do
  if [ -z "$(program "$needed")" ]; then
    echo "$0: no $needed in $bin; --bin names the folder" >&2
    exit 2
  fi
done
bench=$(program kilokv-engine-bench)

# The output of the step that runs. It is in a folder of the results, so that a run that is killed leaves it.
work=$out/running
mkdir -p "$work"
raw=$out/raw.log
: >"$raw"
: >"$work/steps"
steps=0 problems=() left=() checks=() failed=no finished=no
child='' code=0 begin=0 running=()
date=unknown gpu=unknown driver=unknown processor=unknown commit=unknown
declare -A rate=() roofline_text=() roofline_json=() claims=() validated=() target=() targets=()
target_rows=()
deadline=$((SECONDS + budget))

json_string() {
  local text=${1//\\/\\\\}
  text=${text//\"/\\\"}
  text=${text//[[:cntrl:]]/ }
  printf '"%s"' "$text"
}

# note NAME KIND STATUS SECONDS REASON COMMAND JSON: one step of the report. KIND: check or measurement. STATUS: passed,
# failed, cut or left out. A check that did not pass, and a measurement that failed, decide the exit code.
note() {
  {
    if [ "$steps" -gt 0 ]; then printf ,; fi
    printf '{"name":%s,"kind":"%s","status":"%s","seconds":%s,"reason":%s,"command":%s,"output":%s}\n' \
      "$(json_string "$1")" "$2" "$3" "$4" "$(json_string "$5")" "$(json_string "$6")" "${7:-null}"
  } >>"$work/steps"
  steps=$((steps + 1))
  printf '%-10s %6ss  %s%s\n' "$3" "$4" "$1" "${5:+: $5}"
  if [ "$2" = check ]; then checks+=("$3: $1 ($4 s)"); fi
  case "$3" in
    failed) problems+=("$1: failed: $5"); failed=yes ;;
    cut) left+=("$1 (cut: $5)"); if [ "$2" = check ]; then failed=yes; fi ;;
    'left out') left+=("$1 ($5)") ;;
  esac
  write_documents
}

has_part() {
  [[ ,$parts, == *,$1,* ]]
}

leave_out() {
  note "$1" "$2" 'left out' 0 "$3" '' ''
}

# attempt SECONDS_MAX COMMAND...: runs the command. Its output is in $work/out and $work/err, its exit code in `code`,
# and its start in `begin`. It runs in the background, because bash handles a signal at once only in `wait`.
attempt() {
  local limit=$1
  shift
  code=0 begin=$SECONDS
  timeout --kill-after=5 "$limit" "$@" >"$work/out" 2>"$work/err" </dev/null &
  child=$!
  wait "$child" 2>/dev/null || code=$?
  child=''
}

# Write to raw.log: first the command that is about to run, and after its end what it printed. So the log of a run that
# is killed has the last command.
log_start() {
  printf '== %s\n$ %s\n' "$1" "$2" >>"$raw"
}
log_end() {
  { cat "$work/out" "$work/err"; printf '== %s\n\n' "$1"; } >>"$raw"
}

# Ends the step that runs, and writes down how far the run came. timeout and all that it runs have their own process
# group.
ended() {
  trap '' TERM INT HUP
  set +e
  if [ -n "$child" ]; then
    kill -KILL -- "-$child" 2>/dev/null || kill -KILL "$child" 2>/dev/null
    wait "$child" 2>/dev/null
  fi
  if [ "${#running[@]}" -gt 0 ]; then
    log_end 'the run was ended from outside'
    note "${running[0]}" "${running[1]}" cut $((SECONDS - begin)) 'the run was ended from outside' "${running[2]}" ''
  elif [ "$finished" = no ]; then
    write_documents
  fi
  rm -f "$work"/{out,err,field,steps}
  rmdir "$work" 2>/dev/null
}

# Prints how far a program came: the last of its lines of progress, such as [3/27] hot.
progress() {
  grep '^\[[0-9]' "$work/err" | tail -n 1 | cut -c1-300 || true
}

# Prints the first lines that a program printed about its failure.
complaint() {
  { progress; grep -v -h '^ok \|^\[[0-9]' "$work/err" "$work/out" | head -n 3 | cut -c1-300; } | tr '\n' ' ' || true
}

# how_it_ended SECONDS SECONDS_MAX: sets `status` and `reason` by the exit code. timeout ends with 124, and with 137
# if it had to kill the program. A program that something else has killed also ends with 137, before its time is over.
how_it_ended() {
  case "$code" in
    0) status=passed reason='' ;;
    124 | 137)
      if [ "$1" -ge "$2" ]; then
        status=cut reason="at $2 s $(progress)" reason=${reason% }
      elif [ "$code" = 137 ]; then
        status=failed reason="killed after $1 of $2 s: out of memory? $(complaint)"
      else
        status=failed reason="exit code $code: $(complaint)"
      fi
      ;;
    *) status=failed reason="exit code $code: $(complaint)" ;;
  esac
}

# Prints which batches of a document of kilokv-engine-bench did not run on the device. Prints nothing if all of them
# did.
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

# Prints why the engine stopped using the device, or did not find it. Prints nothing if it uses the device.
without_device() {
  if [[ $1 =~ \"execution\":\{\"device\":\"$device\" && ! $1 =~ \"device\":\"cpu\" ]]; then return; fi
  [[ $1 =~ \"device_reason\":\"([^\"]+)\" ]] || true
  echo "the device is not in use: ${BASH_REMATCH[1]:-no reason told}"
}

# Prints what is wrong with a step whose exit code was 0, or nothing. $1: WHERE, $2: the JSON document.
what_is_missing() {
  local text=''
  case "$1" in
    device) text=$(not_on_device "$2") ;;
    found) text=$(without_device "$2") ;;
  esac
  if [ -z "$text" ] && [ -n "${verdict:-}" ] && ! grep -q -F -- "$verdict" "$work/out" "$work/err"; then
    text="its output has no line '$verdict'"
  fi
  if [ -z "$text" ] && [ -n "${document:-}" ] && [ ! -s "$document" ]; then text="it left no ${document##*/}"; fi
  echo "$text"
}

# [verdict=TEXT] [document=FILE] step NAME KIND SECONDS_MAX WHERE COMMAND...: runs one step. Its output goes to raw.log,
# and also into the report if it is a JSON document, which has one line. WHERE: device, if every batch must run there;
# found, if batches may run there; any otherwise. verdict: a line that its output must have; document: a file that it
# must write.
step() {
  local name=$1 kind=$2 limit=$3 where=$4
  shift 4
  local remaining=$((deadline - SECONDS)) seconds json='' reason='' status=passed
  json_out=''
  : >"$work/out"
  : >"$work/err"
  if [ "$remaining" -le 0 ]; then
    note "$name" "$kind" cut 0 'no time was left' "$*" ''
    return
  fi
  if [ "$limit" -gt "$remaining" ]; then limit=$remaining; fi
  if [ -n "${document:-}" ]; then rm -f "$document"; fi
  log_start "$name" "$*"
  begin=$SECONDS running=("$name" "$kind" "$*")
  attempt "$limit" "$@"
  running=()
  seconds=$((SECONDS - begin))
  how_it_ended "$seconds" "$limit"
  if [ "$status" = passed ]; then
    json=$(grep -m 1 '^{.*}$' "$work/out") || json=''
    reason=$(what_is_missing "$where" "$json")
    if [ -n "$reason" ]; then status=failed; fi
  fi
  log_end "exit code $code${reason:+; $status: $reason}"
  note "$name" "$kind" "$status" "$seconds" "$reason" "$*" "$json"
  if [ "$status" = passed ]; then json_out=$json; fi
}

# --- the facts about the machine

# Prints the first line of a field of nvidia-smi.
of_driver() {
  attempt 10 nvidia-smi --query-gpu="$1" --format=csv,noheader
  [ "$code" = 0 ] && head -n 1 "$work/out" >"$work/field" && [ -s "$work/field" ]
}

facts() {
  gpu='none' driver='none'
  date=$(date -u +%Y-%m-%dT%H:%M:%SZ)
  if command -v nvidia-smi >/dev/null; then
    log_start nvidia-smi nvidia-smi
    attempt 10 nvidia-smi
    log_end "exit code $code"
    gpu=unknown driver=unknown
    if [ "$code" = 0 ]; then
      if of_driver name; then gpu=$(<"$work/field"); fi
      if of_driver driver_version; then driver=$(<"$work/field"); fi
    fi
  elif [ -r /proc/driver/nvidia/version ]; then
    gpu=unknown driver=$(head -n 1 /proc/driver/nvidia/version)
  fi
  local document
  attempt 20 "$bench" --keys 2 --batch 1 --batches 1 --json
  document=$(<"$work/out")
  if [[ $document =~ \"commit\":\"([^\"]*)\" ]]; then commit=${BASH_REMATCH[1]}; fi
  if [[ $document =~ \"cpu\":\"([^\"]*)\",\"cores\":([0-9]+) ]]; then
    processor="${BASH_REMATCH[1]}, ${BASH_REMATCH[2]} cores"
  fi
}

print_facts() {
  printf -- '- date: %s\n- GPU: %s\n- driver: %s\n- processor: %s\n- commit: %s\n- command: `%s`\n' \
    "$date" "$gpu" "$driver" "$processor" "$commit" "$command_line"
}

# --- the steps

# Without the device, the steps below have no meaning. This is the first kernel of all, so its start may take long.
require_device() {
  step 'a batch on the device' check 60 device "$bench" --device "$device" --strategy ordered --keys 16 --batch 16 \
    --batches 1 --json
  if [ -z "$json_out" ]; then
    printf '%s: no batch runs on this device: %s\n' "$0" "${problems[*]:-${left[*]}}" >&2
    printf 'On a machine without a GPU, the rehearsal is: %s --device emulated --quick\n' "$0" >&2
    finished=yes
    write_documents
    exit 1
  fi
}

# Measures tables of two sizes. One has the size of the accounts for which targets are set. The other is much larger
# than the caches of a device.
measure_roofline() {
  local bytes path
  path=$(program kilokv-roofline)
  for bytes in "$small_bytes" "$roofline_bytes"; do
    if [ "$device" != cuda ]; then
      leave_out "roofline, $bytes bytes" measurement 'there is no GPU to measure'
    elif [ -z "$path" ]; then
      leave_out "roofline, $bytes bytes" measurement "no kilokv-roofline in $bin"
    else
      step "roofline, $bytes bytes" measurement 40 any "$path" --bytes "$bytes" --repetitions \
        "$roofline_repetitions" --json
      if [ -n "$json_out" ]; then
        roofline_json[$bytes]=$json_out
        roofline_text[$bytes]=$(<"$work/err")
      fi
    fi
  done
}

check_device_layer() {
  step 'device layer' check 40 any env KILOKV_TEST_DEVICE="$device" "$(program engine_device_test)"
}

check_clusters() {
  if [ "$device" != cuda ]; then
    leave_out 'cluster memory' check 'there is no GPU to check'
  else
    step 'cluster memory' check 60 any "$(program kilokv-cluster-check)"
  fi
}

check_random_batches() {
  step "random batches, $chains chains of 10" check 60 any env KILOKV_TEST_DEVICE="$device" \
    KILOKV_TEST_CHAINS="$chains" "$(program engine_random_batch_test)" ordered_on_the_chosen_device_equals_the_referee
  step "random batches in any order, $any_order_chains chains of 6" check 120 any env KILOKV_TEST_DEVICE="$device" \
    KILOKV_TEST_CHAINS="$any_order_chains" "$(program engine_any_order_test)" on_the_chosen_device
  step 'large stages' check 40 any env KILOKV_TEST_DEVICE="$device" "$(program engine_any_order_test)" \
    large_stages_of_the_chosen_device
}

check_read_sets() {
  step 'large read sets' check 45 any env KILOKV_TEST_DEVICE="$device" "$(program engine_read_set_test)" \
    on_the_chosen_device_is_as_guard_by_guard
}

# verify NAME SECONDS_MAX WHERE STRATEGY FLAGS...: batches that the referee replays.
verify() {
  local name=$1 limit=$2 where=$3 strategy=$4
  shift 4
  step "verify, $name" check "$limit" "$where" "$bench" --device "$device" --strategy "$strategy" --verify "$@" --json
}

# The longest steps come last, because a short budget cuts the last steps.
check_workloads() {
  local strategy
  local few=(--no-ranges --workload all --keys 64 --batches "$verify_batches")
  local full=(--keys "${verify_thousands}000" --batch "$verify_large" --batches 2)
  local large="${verify_thousands}k keys, batches of $verify_large"
  verify 'all workloads, 64 keys' 40 device ordered "${few[@]}" --batch 1024
  for strategy in prstm lock gpustm kilo local; do
    verify "all workloads, 64 keys, $strategy" 40 device "$strategy" "${few[@]}" --batch 1024
  done
  verify 'all workloads, 64 keys, local, a stage of 8 blocks' 40 device local --stage-blocks 8 "${few[@]}" \
    --batch "$verify_stage"
  verify 'all workloads with ranges, auto' 40 found auto --workload all --keys 1000 --batch 2048 \
    --batches "$verify_batches"
  verify "all workloads, $large" 90 device ordered --no-ranges --workload all "${full[@]}"
  for strategy in prstm lock gpustm kilo local; do
    verify "bank zipf 0.99, $large, $strategy" 40 device "$strategy" --workload bank --distribution zipf:0.99 \
      "${full[@]}"
  done
}

find_sanitizer() {
  local path
  for path in compute-sanitizer ${CUDA_HOME:+"$CUDA_HOME/bin/compute-sanitizer"} \
    /usr/local/cuda/bin/compute-sanitizer /usr/local/cuda-*/bin/compute-sanitizer /opt/cuda/bin/compute-sanitizer; do
    if command -v "$path"; then return; fi
  done
}

# Sets `trouble` to the reason why the sanitizer cannot be used. Empty: it can be used. It does not support all devices.
try_sanitizer() {
  local remaining=$((deadline - SECONDS)) flags=(--tool memcheck)
  trouble=''
  if [ "$device" != cuda ]; then
    trouble='there is no GPU'
  elif [ -z "$sanitizer" ]; then
    trouble='it was not found'
  elif [ "$remaining" -gt 0 ]; then
    flags+=("$bench" --device cuda --strategy ordered --keys 16 --batch 16 --batches 1)
    log_start 'compute-sanitizer, tried out' "$sanitizer ${flags[*]}"
    attempt $((remaining < 30 ? remaining : 30)) "$sanitizer" "${flags[@]}"
    log_end "exit code $code"
    if grep -q '[Nn]ot supported' "$work/out" "$work/err"; then
      trouble='it does not support this device; raw.log has its words'
    fi
  fi
}

# under TOOL NAME WHERE COMMAND...: makes a short run, because the tools slow a kernel down a hundredfold. The run must
# end with the line of the tool that says that nothing was found. Without this line, the tool did not see the whole run.
under() {
  local tool=$1 name=$2 where=$3 flags=() verdict='ERROR SUMMARY: 0 errors'
  shift 3
  if [ "$tool" = racecheck ]; then
    # It follows barriers, but not locks, so it warns about accesses that only a claim orders.
    flags=(--racecheck-detect-level error) verdict='RACECHECK SUMMARY: 0 hazards displayed'
  fi
  step "compute-sanitizer $tool, $name" check 40 "$where" env KILOKV_TEST_DEVICE="$device" KILOKV_TEST_CHAINS=2 \
    "$sanitizer" --tool "$tool" "${flags[@]}" --error-exitcode 9 "$@"
}

# memcheck finds accesses outside of memory, initcheck reads of memory that was never written, and synccheck wrong
# barriers. racecheck finds races in shared memory, which only the stage of `local` uses.
check_with_sanitizer() {
  local sanitizer trouble tool
  local any_order short=(--batch 2048 --batches 2 --verify --json)
  any_order=$(program engine_any_order_test)
  sanitizer=$(find_sanitizer) || sanitizer=''
  try_sanitizer
  if [ -n "$trouble" ]; then
    leave_out compute-sanitizer check "$trouble"
    return
  fi
  for tool in memcheck initcheck racecheck synccheck; do
    under "$tool" 'large stages' any "$any_order" large_stages_of_the_chosen_device
    under "$tool" 'random batches in any order' any "$any_order" on_the_chosen_device
    if [ "$tool" = racecheck ]; then
      under "$tool" 'local' device "$bench" --device "$device" --strategy local --workload local-ht "${short[@]}"
      under "$tool" 'local, a stage of 8 blocks' device "$bench" --device "$device" --strategy local \
        --stage-blocks 8 --workload local-ht "${short[@]}"
      continue
    fi
    under "$tool" 'random batches' any "$(program engine_random_batch_test)" \
      ordered_on_the_chosen_device_equals_the_referee
    under "$tool" 'bank' device "$bench" --device "$device" --strategy ordered --workload bank --keys 1000 "${short[@]}"
    if [ "$tool" = synccheck ]; then continue; fi
    under "$tool" 'large read sets' any "$(program engine_read_set_test)" on_the_chosen_device_is_as_guard_by_guard
  done
}

# keep_ratios LANES DOCUMENT: makes rows of the summary that compare each way with one thread alone.
keep_ratios() {
  local text=$2 one
  while [[ $text =~ \{(\"reads\":[^{}]*)\}(.*) ]]; do
    one=${BASH_REMATCH[1]} text=${BASH_REMATCH[2]}
    if [[ $one =~ \"validation\":\"(auto|cooperative)\" ]]; then
      validated[$1]+="| $1 | $(value "$one" reads) | $(value "$one" conflict) | $(value "$one" validation) |"
      validated[$1]+=" $(value "$one" ran_on) | $(value "$one" transactions_per_second) |"
      validated[$1]+=" $(value "$one" ratio_to_alone) |"$'\n'
    fi
  done
}

# Measures figures 7, 10 and 11 of the validation paper.
measure_read_sets() {
  local lanes
  for lanes in coalesced strided; do
    step "validate, $lanes" measurement 60 any "$bench" validate --device "$device" --lanes "$lanes" "${validate[@]}" \
      --json -
    if [ -n "$json_out" ]; then keep_ratios "$lanes" "$json_out"; fi
  done
}

# compare_figures SET SECONDS_MAX FLAGS...: compares the strategies in a set of figures, and keeps the claims as rows of
# the summary. A page can be made from the document on another machine (kilokv-engine-bench compare --from).
compare_figures() {
  local figures=$1 limit=$2 line claim=''
  shift 2
  document=$out/compare-$figures.json step "compare, $figures" measurement "$limit" any "$bench" compare \
    --figures "$figures" --device "$device" --threads 1 --repeats 1 "${compare[@]}" "$@" \
    --json "$out/compare-$figures.json"
  while IFS= read -r line; do
    if [[ $line =~ ^\ \ (yes|NO)\ +(.*)$ ]]; then
      claims[$figures]+="| $figures | ${BASH_REMATCH[1]} | $claim | ${BASH_REMATCH[2]} |"$'\n'
    else
      claim=$line
    fi
  done < <(sed '1,/^Claims/d' "$work/out")
}

compare_strategies() {
  compare_figures local 60 "${local[@]}"
  compare_figures kilo 80 "${kilo[@]}"
  compare_figures prstm 240 "${prstm[@]}"
  compare_figures workloads 140 "${workloads[@]}"
  compare_figures contention 180 "${contention[@]}"
}

# Lists the targets that no program here measures.
leave_out_figures() {
  leave_out 'best strategy against serial on the device' measurement \
    'serial runs on the CPU only; compare-kilo.json has its rates there'
}
leave_out_rates() {
  leave_out 'the whole server' measurement \
    'its programs are not in the folder; kilokv-bench measures it on a machine that has them'
}

# --- numbers: bash has only integers

# value DOCUMENT NAME: prints the value of the first field with this name, or - if there is none.
value() {
  if [[ $1 =~ \"$2\":\"?([^\",}]*) ]]; then echo "${BASH_REMATCH[1]}"; else echo -; fi
}

# Prints a decimal number in ten-thousandths, or 0 for any other text.
fixed() {
  local digits
  if [[ $1 =~ ^([0-9]{1,14})(\.([0-9]*))?$ ]]; then
    digits=${BASH_REMATCH[3]}0000
    echo $((10#${BASH_REMATCH[1]} * 10000 + 10#${digits:0:4}))
  else
    echo 0
  fi
}

# quotient A B UNITS: prints A / (B * UNITS) with three digits after the point, or - if one of them is missing.
quotient() {
  if [ "$1" = 0 ] || [ "$2" = 0 ]; then
    echo -
  else
    printf '%d.%03d\n' $(($1 / ($2 * $3))) $(($1 % ($2 * $3) * 1000 / ($2 * $3)))
  fi
}

# each_second COUNT SECONDS: prints the count in one second as an integer, or 0 if a number is missing. Both arguments
# have the form that documents have.
each_second() {
  local seconds
  seconds=$(fixed "$2")
  if [ "$seconds" = 0 ]; then echo 0; else echo $(($(fixed "$1") / seconds)); fi
}

# at_most BYTES MEASURE: prints the value of the roofline, in ten-thousandths of its unit, or 0 if it was not measured.
at_most() {
  if [[ ${roofline_json[$1]:-} =~ \"name\":\"$2\",[^{}]*\"median\":([0-9.]+) ]]; then
    fixed "${BASH_REMATCH[1]}"
  else
    echo 0
  fi
}

# --- rates

# measure_target ROW STRATEGY SECONDS_MAX FLAGS...: measures a row of the table of targets. A transfer makes four random
# accesses to records. Bytes on the link count in both directions.
measure_target() {
  local row=$1 strategy=$2 limit=$3 where=device doc rate_there per_second bytes cells='' order=() before=2
  shift 3
  if [ "$strategy" = auto ]; then where=found order=(--order any) before=$warmup; fi
  step "target: $row, $strategy" measurement "$limit" "$where" "$bench" --strategy "$strategy" --device "$device" \
    "${order[@]}" --warmup "$before" --duration "$duration" "$@" --json
  doc=$json_out
  target_rows+=("$row|$strategy")
  per_second=$(each_second "$(value "$doc" committed)" "$(value "$doc" seconds)")
  # If the CPU ran some of the batches, the share of the device is not known.
  rate_there=0 bytes=0
  if [ -n "$doc" ] && [ -z "$(not_on_device "$doc")" ]; then
    rate_there=$(each_second "$(value "$doc" committed)" "$(value "$doc" kernel_seconds)")
    bytes=$(($(fixed "$(value "$doc" sent_bytes)") / 10000 + $(fixed "$(value "$doc" returned_bytes)") / 10000))
    bytes=$(each_second "$bytes" "$(value "$doc" seconds)")
  fi
  target[$row\|$strategy]=$per_second
  cells+=" $(quotient "$per_second" 1 1000000) | $(quotient "$rate_there" 1 1000000) |"
  if [[ $row == bank* ]]; then
    cells+=" $(quotient "$rate_there" "$(at_most "$small_bytes" random_read)" 25) |"
    cells+=" $(quotient "$rate_there" "$(at_most "$roofline_bytes" random_read)" 25) |"
  else
    cells+=' - | - |'
  fi
  cells+=" $(quotient "$bytes" 1 1000000000) | $(quotient "$bytes" "$(at_most "$small_bytes" both_ways)" 100000) |"
  targets[$row\|$strategy]="$cells $(value "$doc" postponed) | $(value "$doc" wait_expired) |"
}

measure_targets() {
  local size strategy
  for size in "${large_sizes[@]}"; do
    for strategy in ordered prstm auto; do
      measure_target "bank, $large_accounts accounts, batches of $size" "$strategy" 40 --workload bank \
        --keys "$large_accounts" --batch "$size"
    done
  done
  for strategy in auto prstm ordered kilo lock; do
    measure_target "ycsb-a, $rows rows, 16 operations, half of them write, zipf 0.8" "$strategy" 80 --workload ycsb-a \
      --keys "$rows" --operations 16 --update-share 0.5 --distribution zipf:0.8 --batch "$rows_batch"
  done
  for size in 1 "$warehouses"; do
    measure_target "payment, warehouses: $size" auto 40 --workload tpcc --payment-share 1 --keys "$payers" \
      --warehouses "$size" --batch "${large_sizes[0]}"
  done
}

strategies=(serial ordered-cpu "ordered-$device" "auto-$device")

# measure TABLE ROW WORKLOAD BATCH FLAGS...: measures a rate for each strategy, and stores it in
# rate[TABLE|ROW|STRATEGY].
measure() {
  local table=$1 row=$2 workload=$3 batch=$4 strategy where on before=$warmup
  shift 4
  if [ "$batch" -ge 1000000 ]; then before=2; fi
  for strategy in "${strategies[@]}"; do
    on=cpu where=any
    case "$strategy" in
      ordered-cpu) ;;
      ordered-*) on=$device where=device ;;
      auto-*) on=$device where=found ;;
    esac
    step "$table, $row, $strategy" measurement 40 "$where" "$bench" --strategy "${strategy%%-*}" --device "$on" \
      --workload "$workload" --warmup "$before" --duration "$duration" --batch "$batch" --json "$@"
    if [[ $json_out =~ \"transactions_per_second\":([0-9]+) ]]; then
      printf -v "rate[$table|$row|$strategy]" '%d.%02d' $((BASH_REMATCH[1] / 1000000)) \
        $((BASH_REMATCH[1] % 1000000 / 10000))
    fi
  done
}

measure_workloads() {
  local size theta workload
  for size in "${sizes[@]}"; do
    measure "bank, $large_accounts accounts" "batch $size" bank "$size" --keys "$large_accounts"
  done
  for theta in "${thetas[@]}"; do
    measure 'contention, bank' "zipf $theta" bank "$thetas_batch" --keys "$keys" --distribution "zipf:$theta"
  done
  for size in "${sizes[@]}"; do
    measure 'bank uniform' "batch $size" bank "$size" --keys "$keys"
    measure 'bank zipf 0.99' "batch $size" bank "$size" --keys "$keys" --distribution zipf:0.99
    for workload in hot hot-deposits bank-semantic ycsb-a; do
      measure "$workload" "batch $size" "$workload" "$size" --keys "$keys"
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

print_targets() {
  local row
  local one=${target['payment, warehouses: 1|auto']:-0} many=${target["payment, warehouses: $warehouses|auto"]:-0}
  printf '\n## Targets\n\nThe rates are millions of committed transactions a second. The first one is by the clock. It '
  printf 'includes the columns from the host, and the results back. The second one is by the clock of the device, for '
  printf 'its kernels alone, as if the batch were on the device already. The shares compare it with a quarter of the '
  printf 'random reads a second of the roofline, in a table of %s bytes and in one of %s bytes. The column of the ' \
    "$small_bytes" "$roofline_bytes"
  printf 'link is the share of the host link in both directions at once.\n\n'
  printf '| workload | strategy | by the clock | on the device | share, small table | share, large table | GB/s | '
  printf 'of the link | postponed | expired |\n| --- | --- |'
  printf ' ---: |%.0s' {1..8}
  printf '\n'
  for row in "${target_rows[@]}"; do printf '| %s | %s |%s\n' "${row%|*}" "${row##*|}" "${targets[$row]}"; done
  printf '\nPayment on 1 warehouse against %s: %s.\n' "$warehouses" "$(quotient "$one" "$many" 1)"
}

print_figures() {
  local figures lanes
  if [ "${#claims[@]}" -gt 0 ]; then
    printf '\n## Claims of the comparisons\n\n| figures | holds | claim | worst ratio |\n'
    printf '| --- | --- | --- | --- |\n'
    for figures in local kilo prstm contention workloads; do printf '%s' "${claims[$figures]:-}"; done
  fi
  if [ "${#validated[@]}" -gt 0 ]; then
    printf '\n## Large read sets\n\n| lanes | reads | conflict | validation | on | commits/s | ratio to one thread |\n'
    printf '| --- | ---: | --- | --- | --- | ---: | ---: |\n'
    for lanes in coalesced strided; do printf '%s' "${validated[$lanes]:-}"; done
  fi
}

print_summary() {
  local line bytes table result=passed undone=("${left[@]}")
  # The first check is only that there is a device.
  if [ "${#checks[@]}" -le 1 ] || [[ "${checks[*]:1}" != *passed:* ]]; then result='nothing was checked'; fi
  if [ "$failed" = yes ]; then result=FAILED; fi
  if [ "$finished" = no ]; then result="not finished${problems[0]:+, FAILED}"; fi
  printf '# GPU check: %s\n\n' "$result"
  print_facts
  printf '\n## Problems\n\n'
  for line in "${problems[@]:-none}"; do printf -- '- %s\n' "$line"; done
  printf '\n## Not done\n\n'
  if [ "$finished" = no ]; then undone+=('the steps after the last one here: the run goes on, or was ended'); fi
  for line in "${undone[@]:-none}"; do printf -- '- %s\n' "$line"; done
  printf '\n## Checks\n\n'
  for line in "${checks[@]:-none}"; do printf -- '- %s\n' "$line"; done
  for bytes in "${!roofline_text[@]}"; do
    printf '\n## Limits of the device, in a table of %s bytes\n\n```\n%s\n```\n' "$bytes" \
      "${roofline_text[$bytes]}"
  done
  if [ "${#target_rows[@]}" -gt 0 ]; then print_targets; fi
  print_figures
  if ! has_part rates || [ "${#rate[@]}" -eq 0 ]; then return 0; fi
  printf '\n## Rates\n\n%s keys unless a row says otherwise, seed 1, %s of execution each, after %s batches (2 of ' \
    "$keys" "$duration" "$warmup"
  printf '1000000).\n'
  for table in "bank, $large_accounts accounts" 'bank uniform' 'bank zipf 0.99' hot hot-deposits bank-semantic \
    ycsb-a; do
    print_rates "$table" "${size_rows[@]}"
  done
  print_rates 'contention, bank' "${theta_rows[@]}"
}

yes_or_no() {
  if [ "$1" = yes ]; then printf true; else printf false; fi
}

print_json() {
  local passed=no
  if [ "$failed" = no ] && [ "$finished" = yes ]; then passed=yes; fi
  printf '{"format":"kilokv-gpu-check-1","passed":%s,"finished":%s,"date":%s,"gpu":%s,"driver":%s,"processor":%s' \
    "$(yes_or_no "$passed")" "$(yes_or_no "$finished")" "$(json_string "$date")" "$(json_string "$gpu")" \
    "$(json_string "$driver")" "$(json_string "$processor")"
  printf ',"commit":%s,"parts":"%s","command":%s,"device":"%s","quick":%s,"budget_seconds":%s,"steps":[' \
    "$(json_string "$commit")" "$parts" "$(json_string "$command_line")" "$device" "$(yes_or_no "$quick")" "$budget"
  cat "$work/steps"
  printf ']}\n'
}

# Each file is replaced as a whole, because a run may be killed while it writes.
write_documents() {
  print_summary >"$out/summary.md.new"
  mv "$out/summary.md.new" "$out/summary.md"
  print_json >"$out/report.json.new"
  mv "$out/report.json.new" "$out/report.json"
}

trap ended EXIT
trap 'exit 143' TERM INT HUP
facts
print_facts | tee -a "$raw"
require_device
if has_part checks; then
  check_device_layer
  check_clusters
  check_random_batches
  check_read_sets
  check_workloads
fi
if has_part sanitizers; then check_with_sanitizer; fi
if has_part figures || has_part rates; then measure_roofline; fi
if has_part rates; then
  leave_out_rates
  measure_targets
fi
if has_part figures; then
  leave_out_figures
  measure_read_sets
  compare_strategies
fi
if has_part rates; then measure_workloads; fi

finished=yes
write_documents
cat "$out/summary.md"
if [ "$failed" = yes ]; then exit 1; fi
