#!/usr/bin/env python3
"""Several models under one load: each policy of `placewright serve` answers the same requests.

    bench/serving.py MODEL.xml=SHARE … [--load 0.85] [--requests 3000] [--policies normalised,together]

The requests are those of a Poisson process, open loop: a client sends each at its time, whether or not others are
answered. `together` starts every request at once with all cores, which is what servers do: the same front end with the
policy of the others. Prints a Markdown table.
"""

import argparse
import asyncio
import math
import pathlib
import random
import re
import sys
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

import grpc  # noqa: E402
import numpy  # noqa: E402
import tritonclient.grpc as triton  # noqa: E402
from tritonclient.grpc import service_pb2, service_pb2_grpc  # noqa: E402

import placewright  # noqa: E402


def own_times(server):
    with urllib.request.urlopen(f"http://{server.http}/metrics") as page:
        text = page.read().decode()
    return {model: float(time) for model, time in
            re.findall(r'placewright_model_seconds\{model="([^"]+)"[^}]*\} (\S+)', text)}


def request_for(client, model):
    inputs = []
    for tensor in client.get_model_metadata(model).inputs:
        kind = triton.InferInput(tensor.name, list(tensor.shape), tensor.datatype)
        kind.set_data_from_numpy(numpy.full(tensor.shape, 0.5, triton.triton_to_np_dtype(tensor.datatype)))
        inputs.append(kind)
    request = service_pb2.ModelInferRequest(model_name=model)
    for each in inputs:
        request.inputs.extend([each._get_tensor()])
        request.raw_input_contents.extend([each._get_content()])
    return request


async def replay(address, requests, arrivals):
    """Latencies in milliseconds, by arrival; None where a request failed."""
    async with grpc.aio.insecure_channel(address) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        begin = time.perf_counter()

        async def ask(moment, model):
            await asyncio.sleep(max(0, moment - (time.perf_counter() - begin)))
            try:
                await stub.ModelInfer(requests[model])
            except grpc.aio.AioRpcError:
                return None
            return 1000 * (time.perf_counter() - begin - moment)

        return await asyncio.gather(*(ask(*arrival) for arrival in arrivals))


def percentile(values, share):
    return sorted(values)[math.ceil(share * len(values)) - 1] if values else math.nan


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="+", help="FILE=SHARE of the requests")
    parser.add_argument("--load", type=float, default=0.85)
    parser.add_argument("--requests", type=int, default=3000)
    parser.add_argument("--policies", default="normalised,arrival,together")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    shares = {pathlib.Path(path).stem: float(share) for path, _, share in (each.rpartition("=") for each in options.models)}
    files = [each.rpartition("=")[0] for each in options.models]
    print("| policy | model | requests | failed | mean | p50 | p99 |\n| --- | --- | --- | --- | --- | --- | --- |")
    arrivals = []
    for policy in options.policies.split(","):
        with placewright.Server(files, policy=policy) as server:
            client = triton.InferenceServerClient(server.grpc)
            requests = {model: request_for(client, model) for model in shares}
            if not arrivals:  # of the first server's times, the same for all
                times = own_times(server)
                mean = sum(share * times[model] for model, share in shares.items()) / sum(shares.values())
                draw, now = random.Random(options.seed), 0.0
                for _ in range(options.requests):
                    now += draw.expovariate(options.load / mean)
                    arrivals.append((now, draw.choices(list(shares), list(shares.values()))[0]))
            latencies = asyncio.run(replay(server.grpc, requests, arrivals))
            for model in [*shares, "all"]:
                met = [latency for latency, (_, name) in zip(latencies, arrivals) if model in (name, "all")]
                good = [latency for latency in met if latency is not None]
                print(f"| {policy} | {model} | {len(met)} | {len(met) - len(good)} | {sum(good) / max(len(good), 1):.1f} ms "
                      f"| {percentile(good, 0.5):.1f} ms | {percentile(good, 0.99):.1f} ms |", flush=True)


if __name__ == "__main__":
    main()
