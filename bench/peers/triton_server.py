"""Triton with its Python backend (PyPI: nvidia-pytriton):  triton_server.py GRPC-PORT FREE-PORT FREE-PORT MODEL…"""

import sys

from pytriton.model_config import ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig
from served import Model


def tensors(all_of_model):
    return [Tensor(name=tensor.name, dtype=tensor.dtype, shape=tuple(tensor.shape)) for tensor in all_of_model]


def answering(model):
    def answer(requests):
        return [dict(zip((tensor.name for tensor in model.outputs), model.infer([request.data[tensor.name] for tensor in model.inputs])))
                for request in requests]

    return answer


def main(grpc, http, metrics, *paths):
    config = TritonConfig(grpc_port=int(grpc), http_port=int(http), metrics_port=int(metrics), http_address="127.0.0.1",
                          grpc_address="127.0.0.1", allow_metrics=False, exit_timeout_secs=2)
    with Triton(config=config) as triton:
        for path in paths:
            model = Model(path)
            triton.bind(model.name, answering(model), tensors(model.inputs), tensors(model.outputs), config=ModelConfig(batching=False))
        triton.run()
        print("ready", flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
