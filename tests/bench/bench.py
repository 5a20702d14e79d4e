"""What the scripts of this folder share."""

import os
import platform
import subprocess


def output_of(command):
    """What the command prints. RuntimeError, if it fails."""
    run = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, timeout=900,
                         stdin=subprocess.DEVNULL)
    if run.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit {run.returncode}: {(run.stderr or run.stdout)[-2000:]}")
    return run.stdout


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{len(os.sched_getaffinity(0))} cores, {names[0] if names else platform.processor()}"
