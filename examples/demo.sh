#!/bin/sh
# Places a published model, Moirai's GoogLeNet, on its four unequal devices with every planner, then keeps the best plan,
# checks it and draws it. `make demo` runs this after building.
set -eu

cd "$(dirname "$0")/.."
program=build/placewright
model=examples/moirai/GoogLeNet.json
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

step() {
  printf '\n$ placewright %s\n' "$*"
  "$program" "$@"
}

step info "$model"
step compare "$model"
step plan "$model" -o "$folder/plan.json"
step check "$folder/plan.json"
step simulate "$folder/plan.json" --gantt
