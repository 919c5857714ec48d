#!/usr/bin/env python3
"""A model of llama.cpp over unequal hosts of this machine: every layer boundary beside the planned one.

    bench/llama.py [--page docs/results/llama.md] [--json build/llama.json] [--quick]

Needs `scripts/setup llama`, two cores and root (the slow host is a share of a core by the cgroup quota `cpu`; without
root it shares its core with a program that computes). The hosts are RPC servers: `fast` has core 0, `slow` 30 % of core 1.
The cases:

    too large     the fast host holds 60 % of the model; each boundary that its memory allows is run, in both orders
    fits          the fast host holds all of it: is "do not split" found?
    experts       a mixture of experts of which the fast host holds 60 %; this machine (core 1) may hold experts

Each measured number is the median of --repeats times 32 tokens of `llama-bench`. Takes about ten minutes on an idle machine.
"""

import argparse
import contextlib
import json
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import pages
import random_gguf

ROOT = pathlib.Path(__file__).resolve().parent.parent
CGROUP = pathlib.Path("/sys/fs/cgroup")
PERIOD = 5000  # microseconds
TOKENS = 32


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.contextmanager
def share_of_a_core(process, share, core):
    """30 % of a core by the quota of a cgroup (version 1 or 2), or half of it beside a busy program."""
    group = next((folder / f"placewright-{process.pid}" for folder in (CGROUP / "cpu", CGROUP)
                  if (folder / "cgroup.procs").exists()), None)
    try:
        if group is None:
            raise OSError
        group.mkdir()
        quota = int(PERIOD * share)
        if (group / "cpu.cfs_quota_us").exists():
            (group / "cpu.cfs_period_us").write_text(str(PERIOD))
            (group / "cpu.cfs_quota_us").write_text(str(quota))
        else:
            (group / "cpu.max").write_text(f"{quota} {PERIOD}")
        (group / "cgroup.procs").write_text(str(process.pid))
        yield f"{share:.0%} of core {core} by quota"
    except OSError:
        with subprocess.Popen(["taskset", "-c", str(core), sys.executable, "-c", "while True: pass"]) as busy:
            try:
                yield f"core {core} beside a program that computes"
            finally:
                busy.kill()
    finally:
        process.kill()
        process.wait()
        if group is not None and group.exists():
            for _ in range(50):
                with contextlib.suppress(OSError):
                    group.rmdir()
                    break
                time.sleep(0.1)


def start_server(tools, core):
    port = free_port()
    server = subprocess.Popen(
        ["taskset", "-c", str(core), tools / "ggml-rpc-server", "-t", "1", "-p", str(port)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(100):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return server, f"127.0.0.1:{port}"
        time.sleep(0.1)
    server.kill()
    raise SystemExit("the RPC server does not answer")


class Bench:
    """One model on one set of hosts."""

    def __init__(self, options, model, hosts, folder):
        self.options, self.model, self.folder = options, model, folder
        self.program = pages.Program(options.program)
        self.arguments = ["--tools", options.tools, "--context", "512", "--threads", "1",
                          "--repeats", options.repeats, "--tokens", TOKENS, "--for", "llama-bench"]
        self.names = [host["name"] for host in hosts]
        self.hosts = folder / "hosts.json"
        self.measured = folder / "measured.json"
        self.hosts.write_text(json.dumps({"placewright": "llama-hosts", "version": 1, "hosts": hosts}))

    def plan(self):
        begin = time.monotonic()
        answer = self.program.run("llama", self.model, "--hosts", self.hosts, "--measured", self.measured, *self.arguments)
        answer["seconds"] = time.monotonic() - begin
        return answer

    def predict(self, *shares):
        split = ",".join(f"{name}={layers}" for name, layers in shares)
        return self.program.run("llama", self.model, "--hosts", self.measured, "--split", split, *self.arguments)

    def run(self, answer):
        """Tokens per second of the answer's command."""
        command = [*answer["command"], "-o", "json", "-p", "0", "-n", TOKENS, "-r", self.options.repeats]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
        samples = [sample for test in json.loads(done.stdout) for sample in test["samples_ns"]]
        return TOKENS * 1e9 / statistics.median(samples)


def row_of(name, predicted, measured):
    return {"split": name, "predicted": predicted, "measured": measured}


def bytes_of(model):
    return model.stat().st_size


def too_large(bench, layers):
    """Ours, llama.cpp's split by memory, and every boundary that fits, in both orders."""
    ours = bench.plan()
    if not ours["split"]:
        raise SystemExit("a model that no host holds alone was not split")
    rows = [row_of("planned", ours["tokens_per_second"], bench.run(ours))]
    by_memory = next(entry for entry in ours["candidates"] if entry["name"].startswith("by memory"))
    shares = [(share["host"], share["layers"]) for share in by_memory["shares"]]
    rows.append(row_of("by memory, as llama.cpp", by_memory["tokens_per_second"], bench.run(bench.predict(*shares))))
    for first, second in (bench.names, bench.names[::-1]):
        for boundary in range(1, layers):
            shares = [(first, boundary), (second, layers - boundary)]
            answer = bench.predict(*shares)
            if not answer.get("command"):
                continue  # does not fit
            name = ", ".join(f"{host} {count}" for host, count in shares)
            rows.append(row_of(name, answer["tokens_per_second"], bench.run(answer)))
    return ours, rows


def fits(bench, layers):
    ours = bench.plan()
    rows = [row_of("planned: " + ("split" if ours["split"] else "do not split"), ours["tokens_per_second"], bench.run(ours))]
    for name in bench.names:
        answer = bench.predict((name, layers))
        if answer.get("command"):
            rows.append(row_of(f"all on {name}", answer["tokens_per_second"], bench.run(answer)))
    halves = [(bench.names[0], layers - layers // 2), (bench.names[1], layers // 2)]
    answer = bench.predict(*halves)
    rows.append(row_of("halves", answer["tokens_per_second"], bench.run(answer)))
    return ours, rows


def experts(bench, layers):
    ours = bench.plan()
    shares = [f"{share['host']} {share['layers']}" +
              (f" (experts of {share['experts_here']} here)" if share["experts_here"] else "")
              for share in ours["candidates"][0]["shares"]]
    rows = [row_of("planned: " + ", ".join(shares), ours["tokens_per_second"], bench.run(ours))]
    answer = bench.predict(("here", layers))
    if answer.get("command"):
        rows.append(row_of("all here", answer["tokens_per_second"], bench.run(answer)))
    return ours, rows


def error_of(row):
    return abs(row["predicted"] - row["measured"]) / row["measured"]


def case_table(rows):
    return pages.table(["layers", "predicted tokens/s", "measured", "off by"],
                       [[row["split"], f"{row['predicted']:.1f}", f"{row['measured']:.1f}", f"{error_of(row):.0%}"]
                        for row in rows])


def summary(results):
    rows = results["too large"]
    boundaries = [row["measured"] for row in rows[2:]]
    every = [error_of(row) for case in results.values() for row in case]
    return pages.table(["what", "figure"], [
        ["planned beside the best boundary", f"{rows[0]['measured'] / max(boundaries):.3f}x"],
        ["planned beside llama.cpp's split by memory", f"{rows[0]['measured'] / rows[1]['measured']:.2f}x"],
        ["prediction off by, median of all", f"{statistics.median(every):.1%}"],
        ["the model fits the fast host", results["fits"][0]["split"].removeprefix("planned: ")],
    ], numbers=False)


def run_cases(options, folder):
    layers = 8 if options.quick else 16
    dense, mixture = folder / "dense.gguf", folder / "experts.gguf"
    random_gguf.write(dense, layers, 1024)
    random_gguf.write(mixture, 8, 512, experts=8)
    fast, fast_at = start_server(options.tools, 0)
    slow, slow_at = start_server(options.tools, 1)
    results = {}
    with share_of_a_core(slow, 0.3, 1) as how:
        try:
            print(f"slow: {how}", file=sys.stderr)

            def hosts(model, share):
                return [{"name": "fast", "endpoint": fast_at, "memory": share * bytes_of(model)},
                        {"name": "slow", "endpoint": slow_at, "memory": 2.0 * bytes_of(model)}]

            here = {"name": "here"}
            cases = [("too large", too_large, dense, hosts(dense, 0.6), layers),
                     ("fits", fits, dense, hosts(dense, 2.0), layers),
                     ("experts", experts, mixture, [hosts(mixture, 0.6)[0], here], 8)]
            for name, case, model, machines, count in cases:
                ours, rows = case(Bench(options, model, machines, folder), count)
                print(f"{name}: planned in {ours['seconds']:.1f} s, measurements included", file=sys.stderr)
                print(case_table(rows), flush=True)
                results[name] = rows
        finally:
            fast.kill()
            fast.wait()
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/placewright")
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / ".deps/llama/bin")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="half the layers")
    parser.add_argument("--page", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    if not (options.tools / "llama-bench").exists():
        raise SystemExit("there is no llama.cpp: run 'make llama'")
    with tempfile.TemporaryDirectory() as folder:
        results = run_cases(options, pathlib.Path(folder))
    print(summary(results))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))
    if options.page:
        pages.fill(options.page, "summary", summary(results))
        for name, rows in results.items():
            pages.fill(options.page, name, case_table(rows))


if __name__ == "__main__":
    main()
