#!/bin/sh
# again_after_crash.sh COMMAND ...: runs a compiler, and runs it again if it crashed (a signal: 128 or more), at most five
# times in all. nvcc 13.0's cicc sometimes ends with a segmentation fault, and compiles the same file the next time. An
# error in the source ends with another exit code, and is reported at once.
tries=1
while :; do
  "$@"
  code=$?
  if [ "$code" -lt 128 ] || [ "$tries" -ge 5 ]; then
    exit "$code"
  fi
  tries=$((tries + 1))
  echo "$1: crashed with exit code $code; try $tries of 5" >&2
done
