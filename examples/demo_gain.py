"""What a small model gains beside a large one:  demo_gain.py TOGETHER.json PLACEWRIGHT.json

Both files are what `placewright serve --measure --json` printed for the same requests.
"""

import json
import pathlib
import sys

together, ours = ({row["model"]: row for row in json.loads(pathlib.Path(path).read_text())["measured"]} for path in sys.argv[1:3])
print("99th percentile of the latency, from a request to its answer:")
for model in together:
    if model == "all":
        continue
    before, after = together[model]["p99"], ours[model]["p99"]
    ratio = before / after if after else 1
    said = f"{ratio:.1f} times as short" if ratio > 1 else f"{1 / ratio:.1f} times as LONG"
    print(f"  {model:12}  {before:8.1f} ms all at once   {after:8.1f} ms with placewright   {said}")
