"""Ray Serve (PyPI: ray[serve]) with OpenVINO inside, a deployment for each model:  ray_server.py GRPC-PORT FREE-PORT FREE-PORT MODEL…

A call names its model in the metadata, as `application`.
"""

import asyncio
import os
import pathlib
import sys

HERE = str(pathlib.Path(__file__).resolve().parent)
os.environ["PYTHONPATH"] = HERE
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import numpy
import ray
from ray import serve
from ray.serve.config import gRPCOptions
from tritonclient.grpc import service_pb2


@serve.deployment(max_ongoing_requests=1000, ray_actor_options={"num_cpus": 0})
class Served:
    def __init__(self, path, cores):
        os.sched_setaffinity(0, cores)
        from served import Model

        self.model = Model(path)
        self.turn = asyncio.Lock()

    async def ModelInfer(self, request):  # noqa: N802  # the protocol's name
        arrays = [numpy.frombuffer(content, tensor.dtype).reshape(tensor.shape)
                  for tensor, content in zip(self.model.inputs, request.raw_input_contents)]
        async with self.turn:
            outputs = await asyncio.to_thread(self.model.infer, arrays)
        answer = service_pb2.ModelInferResponse(model_name=self.model.name)
        for tensor, array in zip(self.model.outputs, outputs):
            answer.outputs.add(name=tensor.name, datatype=tensor.datatype, shape=tensor.shape)
            answer.raw_output_contents.append(array.tobytes())
        return answer


def main(grpc, http, metrics, *paths):
    ray.init(address="local", include_dashboard=False, configure_logging=False, object_store_memory=200_000_000, num_cpus=64)
    serve.start(http_options={"host": "127.0.0.1", "port": int(http)},
                grpc_options=gRPCOptions(port=int(grpc), grpc_servicer_functions=[
                    "tritonclient.grpc.service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server"]))
    for path in paths:
        name = pathlib.Path(path).stem
        serve.run(Served.bind(path, os.sched_getaffinity(0)), name=name, route_prefix=f"/{name}")
    print("ready", flush=True)
    sys.stdin.read()
    serve.shutdown()
    ray.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
