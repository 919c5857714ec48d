"""What the other servers compute with: a model in OpenVINO as a user compiles it, with all cores."""

import pathlib

import numpy
import openvino

# By the names of the Open Inference Protocol.
TYPES = {"f32": ("FP32", numpy.float32), "i64": ("INT64", numpy.int64), "i32": ("INT32", numpy.int32), "u8": ("UINT8", numpy.uint8)}


class Tensor:
    def __init__(self, port):
        self.name = port.get_any_name()
        self.shape = list(port.get_shape())
        self.datatype, self.dtype = TYPES[port.get_element_type().get_type_name()]


class Model:
    def __init__(self, path, core=None):
        self.name = pathlib.Path(path).stem
        self.compiled = (core or openvino.Core()).compile_model(path, "CPU")
        self.inputs = [Tensor(port) for port in self.compiled.inputs]
        self.outputs = [Tensor(port) for port in self.compiled.outputs]
        self.request = self.compiled.create_infer_request()

    def infer(self, arrays):
        """By input; one call at a time. What can be used as it is, is not copied."""
        self.request.infer([openvino.Tensor(array if array.flags.writeable else array.copy(), shared_memory=True) for array in arrays])
        return [self.request.get_output_tensor(index).data.copy() for index in range(len(self.outputs))]

    def example(self):
        return [numpy.full(tensor.shape, 0.5).astype(tensor.dtype) for tensor in self.inputs]
