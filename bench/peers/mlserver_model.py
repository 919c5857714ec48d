"""A model of MLServer (PyPI: mlserver) with OpenVINO inside, and its start:  mlserver_model.py GRPC-PORT FREE-PORT FREE-PORT MODEL…"""

import asyncio
import json
import os
import pathlib
import sys
import tempfile

from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceResponse, MetadataTensor
from served import Model


class OpenVinoModel(MLModel):
    async def load(self):
        self.model = Model(self.settings.parameters.uri)
        self.turn = asyncio.Lock()
        self.inputs = [MetadataTensor(name=tensor.name, datatype=tensor.datatype, shape=tensor.shape) for tensor in self.model.inputs]
        return True

    async def predict(self, payload):
        given = {tensor.name: tensor for tensor in payload.inputs}
        arrays = [NumpyCodec.decode_input(given[tensor.name]) for tensor in self.model.inputs]
        async with self.turn:
            outputs = await asyncio.to_thread(self.model.infer, arrays)
        return InferenceResponse(model_name=self.name, outputs=[NumpyCodec.encode_output(tensor.name, array)
                                                                for tensor, array in zip(self.model.outputs, outputs)])


def main(grpc, http, metrics, *paths):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="mlserver-"))
    (folder / "settings.json").write_text(json.dumps({
        "host": "127.0.0.1", "grpc_port": int(grpc), "http_port": int(http), "metrics_port": int(metrics), "debug": False,
        "parallel_workers": 0, "grpc_max_message_length": 100_000_000}))
    for path in paths:
        place = folder / pathlib.Path(path).stem
        place.mkdir()
        (place / "model-settings.json").write_text(json.dumps({
            "name": place.name, "implementation": "mlserver_model.OpenVinoModel", "parameters": {"uri": str(path)}}))
    os.environ["PYTHONPATH"] = str(pathlib.Path(__file__).parent)
    os.execv(pathlib.Path(sys.executable).parent / "mlserver", ["mlserver", "start", str(folder)])


if __name__ == "__main__":
    main(*sys.argv[1:])
