#!/bin/sh
# The main job on this machine: a real model, profiled on sets of its cores as devices, tuned for
# latency and for throughput (planned, run, planned again; never slower than uncut), run both ways
# with the outputs checked, predicted beside measured and beside what OpenVINO gives without a plan.
# `make demo` runs this after building; what it makes stays in build/demo/.
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

# What other work disturbed says so and ends with 1; the demo goes on and shows it.
measured() {
  step "$@" || [ $? -eq 1 ]
}

[ -f "$model" ] || step zoo make inceptionv3 -o "$folder"
step devices
step profile "$model" -o "$folder/problem.json"
for objective in latency throughput; do
  plan=$folder/$objective.json
  # Kept by tuning if anything could be measured.
  step plan "$folder/problem.json" --objective $objective -o "$plan" --time-limit 3s
  measured tune "$folder/problem.json" --objective $objective -o "$plan" --rounds 2
  measured run "$plan" --repeat 40 -o "$folder/$objective-run.json" --timeline "$folder/$objective-trace.json" \
    > "$folder/$objective.txt"
  cat "$folder/$objective.txt"
done
step report "$folder/latency.json" --run "$folder/latency-run.json" -o "$folder/report.html"
printf '\n%s/report.html is the page; the traces open in ui.perfetto.dev. In short:\n' "$folder"
grep -h -e '^latency:' -e '^throughput:' -e '^caution:' "$folder/latency.txt" "$folder/throughput.txt" | uniq
