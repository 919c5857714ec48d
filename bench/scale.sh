#!/bin/sh
# The figures of "big inputs": a generated problem of 100,000 ops, 300,000 edges and 64 devices is
# read, planned by the constructive planners, written and checked. Prints wall seconds, CPU seconds
# and peak memory of each step.
#
#   bench/scale.sh [PROGRAM] [OPS] [EDGES] [DEVICES]
set -eu
program=${1:-build/placewright}
ops=${2:-100000}
edges=${3:-300000}
devices=${4:-64}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

measure() {
  name=$1
  shift
  python3 - "$name" "$@" <<'PYTHON'
import os, resource, subprocess, sys, time
begin = time.monotonic()
code = subprocess.run(sys.argv[2:], stdout=subprocess.DEVNULL).returncode
wall = time.monotonic() - begin
use = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"{sys.argv[1]:<12} {wall:8.2f} s wall {use.ru_utime + use.ru_stime:8.2f} s CPU {use.ru_maxrss / 1024:8.0f} MiB")
sys.exit(code)
PYTHON
}

measure generate "$program" generate layered --ops "$ops" --edges "$edges" --devices "$devices" --memory-pressure 0.5 \
  -o "$folder/problem.json"
measure read "$program" import "$folder/problem.json" -o "$folder/copy.json"
for planner in heft etf topo; do
  measure "$planner" "$program" plan "$folder/problem.json" --planner "$planner" --time-limit 10m -q -o "$folder/$planner.json"
  measure check "$program" check "$folder/$planner.json"
done
