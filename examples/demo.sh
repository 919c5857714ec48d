#!/bin/sh
# The main jobs on this machine, each with the seconds since the demo began:
#
#   one model       measured on the sets of this machine's cores, planned, tuned against the settings
#                   of OpenVINO, run with its outputs checked, shown on a page
#   several models  requests for a small and a large model, served in this process: with all of them
#                   at once, as most servers do, and in the order that Placewright chooses
#
# `make demo` runs this after building and says when it began (DEMO_BEGIN). What it makes stays in
# build/demo/.
set -eu

cd "$(dirname "$0")/.."
program=build/placewright
folder=build/demo
begin=${DEMO_BEGIN:-$(date +%s)}
mkdir -p "$folder"

say() {
  printf '\n== %d s: %s\n' $(($(date +%s) - begin)) "$*"
}

step() {
  printf '$ placewright %s\n' "$*"
  "$program" "$@"
}

# What other work disturbed says so and ends with 1; the demo goes on and shows it.
measured() {
  step "$@" || [ $? -eq 1 ]
}

say "making two models with random weights"
for name in inceptionv3 squeezenet; do
  [ -f "$folder/$name.xml" ] || step zoo make $name -o "$folder"
done

say "measuring Inception-V3 on this machine's cores (up to a minute)"
step profile "$folder/inceptionv3.xml" --profile-time 40 -o "$folder/problem.json"

say "planning, then trying plans and OpenVINO's settings in turns (up to half a minute)"
plan=$folder/latency.json
step plan "$folder/problem.json" -o "$plan" --time-limit 3s
measured tune "$folder/problem.json" -o "$plan" --rounds 1

say "running the plan beside OpenVINO alone, and comparing its outputs (some seconds)"
measured run "$plan" --repeat 30 -o "$folder/run.json" --timeline "$folder/trace.json" >"$folder/latency.txt"
cat "$folder/latency.txt"
step report "$plan" --run "$folder/run.json" -o "$folder/report.html"

say "serving requests for both models that keep the cores busy for 80 % of the time (twice ten seconds)"
for policy in together normalised; do
  set -- serve "$folder/squeezenet.xml" "$folder/inceptionv3.xml" --rate squeezenet=6 --rate inceptionv3=1 \
    --load 0.8 --measure 10s --policy $policy --json
  printf '$ placewright %s\n' "$*"
  "$program" "$@" >"$folder/$policy.json"
done

say "done. In short:"
grep -h -e '^latency:' -e '^caution:' "$folder/latency.txt"
.deps/venv/bin/python examples/demo_gain.py "$folder/together.json" "$folder/normalised.json"
echo "$folder/report.html is the page of the plan; $folder/trace.json opens in ui.perfetto.dev"
