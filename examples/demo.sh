#!/bin/sh
# The main job on this machine: a real model, profiled on sets of its cores as devices, planned for latency and for
# throughput, run both ways with the outputs checked, predicted beside measured. `make demo` runs this after building; what
# it makes stays in build/demo/.
set -eu

cd "$(dirname "$0")/.."
program=build/placewright
folder=build/demo
model=$folder/inceptionv3.xml
mkdir -p "$folder"

step() {
  printf '\n$ placewright %s\n' "$*"
  "$program" "$@"
}

# A run that other work disturbed says so and ends with 1; the demo goes on and shows it.
run() {
  step run "$@" || [ $? -eq 1 ]
}

[ -f "$model" ] || step zoo make inceptionv3 -o "$folder"
step devices
step profile "$model" -o "$folder/problem.json"
step plan "$folder/problem.json" -o "$folder/latency.json" --time-limit 3s
run "$folder/latency.json" --repeat 30 -o "$folder/latency-run.json" --trace "$folder/latency-trace.json"
step plan "$folder/problem.json" --objective throughput -o "$folder/throughput.json"
run "$folder/throughput.json" --repeat 60 -o "$folder/throughput-run.json" --trace "$folder/throughput-trace.json"
step report "$folder/latency.json" --run "$folder/latency-run.json" -o "$folder/report.html"
printf '\n%s/report.html is the page; the traces open in ui.perfetto.dev.\n' "$folder"
