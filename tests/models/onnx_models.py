"""Small ONNX models of many kinds, made by the test that uses them. Weights come from a seed."""

import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LATEST_OPSET = 21  # of the ONNX operators that the pinned OpenVINO reads in full


class Maker:
    """Collects nodes and weights; a node's output is called as the node, which has no name of its own."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.weights = [], []

    def weight(self, *shape, scale=0.3):
        values = (self.random.standard_normal(shape) * scale).astype(np.float32)
        return self.constant(values)

    def constant(self, values):
        name = f"weight{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def node(self, kind, *inputs, outputs=1, **attributes):
        names = [f"{kind.lower()}{len(self.nodes)}" + (f".{i}" if i else "") for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def save(self, path, inputs, outputs, opset, external=False):
        def declared(tensors):
            return [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in tensors]

        graph = helper.make_graph(self.nodes, path.stem, declared(inputs), declared(outputs), self.weights)
        # The file format's version that came with opset 7; every later reader takes it up to opset
        # 17.
        version = 4 if opset < 18 else 10
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=version)
        if version == 4:  # weights had to be inputs as well
            model.graph.input.extend(
                helper.make_tensor_value_info(w.name, w.data_type, list(w.dims)) for w in self.weights
            )
        onnx.checker.check_model(model)
        if external:
            onnx.save(
                model, path, save_as_external_data=True, location=path.name + ".data", size_threshold=0
            )
        else:
            onnx.save(model, path)
        return path


FLOAT, INTEGER = TensorProto.FLOAT, TensorProto.INT64


def convolutional(path, opset, seed=1, batch=1):
    """Two branches of convolutions, joined, pooled and classified; `Gemm` and `HardSigmoid` come apart when read."""
    make = Maker(seed)

    def convolution(source, channels_in, channels, kernel):
        weights = make.weight(channels, channels_in, kernel, kernel)
        return make.node(
            "Conv", source, weights, make.weight(channels), kernel_shape=[kernel] * 2, pads=[kernel // 2] * 4
        )

    stem = make.node("Relu", convolution("image", 3, 8, 3))
    left = make.node("HardSigmoid", convolution(stem, 8, 8, 3))
    right = make.node("LeakyRelu", convolution(stem, 8, 8, 1), alpha=0.1)
    joined = make.node("Concat", left, right, axis=1)
    pooled = make.node("Flatten", make.node("GlobalAveragePool", joined))
    scores = make.node("Gemm", pooled, make.weight(10, 16), make.weight(10), transB=1, alpha=0.5)
    result = make.node("Softmax", scores, axis=1)
    return make.save(path, [("image", FLOAT, [batch, 3, 16, 16])], [(result, FLOAT, [batch, 10])], opset)


def quantized(path, opset=17):
    """The convolutional model in int8, as ONNX Runtime's own tool makes it (QDQ)."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static

    class Samples(CalibrationDataReader):
        def __init__(self):
            random = np.random.default_rng(7)
            self.left = [{"image": random.random((1, 3, 16, 16), dtype=np.float32)} for _ in range(8)]

        def get_next(self):
            return self.left.pop() if self.left else None

    source = convolutional(path.with_name("real.onnx"), opset)
    quantize_static(str(source), str(path), Samples(), quant_format=QuantFormat.QDQ)
    return path


def open_shape(path, opset=17, seed=2):
    return convolutional(path, opset, seed, batch="batch")


def several_inputs(path, opset=17, seed=3, external=False):
    """Token ids with open length, a mask and a vector; a gather from a table."""
    make = Maker(seed)
    words = make.node("Gather", make.weight(100, 16), "ids")
    weighted = make.node("Mul", words, make.node("Unsqueeze", "mask", make.constant(np.array([2], np.int64))))
    summed = make.node("ReduceMean", weighted, axes=[1], keepdims=0)
    both = make.node("Concat", summed, "vector", axis=1)
    scores = make.node("Gemm", both, make.weight(20, 4), make.weight(4))
    inputs = [("ids", INTEGER, ["batch", "length"]), ("mask", FLOAT, ["batch", "length"]), ("vector", FLOAT, ["batch", 4])]
    return make.save(path, inputs, [(scores, FLOAT, ["batch", 4])], opset, external)


def quantised(path, opset=17, seed=4):
    """Weights and activations between QuantizeLinear and DequantizeLinear."""
    make = Maker(seed)
    scale, zero = make.constant(np.float32(0.02)), make.constant(np.int8(0))

    def rounded(source):
        return make.node("DequantizeLinear", make.node("QuantizeLinear", source, scale, zero), scale, zero)

    weights = make.constant(make.random.integers(-100, 100, (8, 3, 3, 3)).astype(np.int8))
    kernel = make.node("DequantizeLinear", weights, scale, zero)
    features = make.node("Conv", rounded("image"), kernel, kernel_shape=[3, 3])
    result = make.node("Relu", rounded(make.node("Sigmoid", features)))
    return make.save(path, [("image", FLOAT, [1, 3, 12, 12])], [(result, FLOAT, [1, 8, 10, 10])], opset)


def dynamically_quantised(path, opset=17, seed=5):
    """Activations are quantised by what they turn out to be: DynamicQuantizeLinear and MatMulInteger."""
    make = Maker(seed)
    values, scale, zero = make.node("DynamicQuantizeLinear", "x", outputs=3)
    weights = make.constant(make.random.integers(-100, 100, (16, 8)).astype(np.int8))
    product = make.node("Cast", make.node("MatMulInteger", values, weights, zero), to=FLOAT)
    scaled = make.node("Mul", product, make.node("Mul", scale, make.constant(np.float32(0.01))))
    result = make.node("Tanh", make.node("Add", scaled, make.weight(8)))
    return make.save(path, [("x", FLOAT, [4, 16])], [(result, FLOAT, [4, 8])], opset)


def attention(path, opset=LATEST_OPSET, seed=6):
    """One layer with LayerNormalization and Gelu, operators of the latest opsets."""
    make = Maker(seed)
    normal = make.node("LayerNormalization", "x", make.constant(np.ones(16, np.float32)), make.weight(16), axis=-1)
    query, key, value = (make.node("MatMul", normal, make.weight(16, 16)) for _ in range(3))
    scores = make.node("MatMul", query, make.node("Transpose", key, perm=[0, 2, 1]))
    mixed = make.node("MatMul", make.node("Softmax", scores, axis=-1), value)
    result = make.node("Gelu", make.node("Add", "x", mixed))
    return make.save(path, [("x", FLOAT, [1, 6, 16])], [(result, FLOAT, [1, 6, 16])], opset)


def folder_of_models(folder: pathlib.Path):
    """name -> (path, the `--shape`s it needs)"""
    models = {f"opset{opset}": (convolutional(folder / f"opset{opset}.onnx", opset), []) for opset in (7, 11, 13, 17, LATEST_OPSET)}
    models["open"] = (open_shape(folder / "open.onnx"), ["image=2x3x16x16"])
    models["inputs"] = (several_inputs(folder / "inputs.onnx"), ["ids=1x7", "mask=1x7", "vector=1x4"])
    models["external"] = (several_inputs(folder / "external.onnx", external=True), models["inputs"][1])
    models["quantised"] = (quantised(folder / "quantised.onnx"), [])
    models["dynamic"] = (dynamically_quantised(folder / "dynamic.onnx"), [])
    models["attention"] = (attention(folder / "attention.onnx"), [])
    return models
