#!/usr/bin/env python3
"""Makes the architectures of the model zoo again: zoo/index.json and zoo/architectures/NAME.json.xz.

    python -m venv zoo-venv
    zoo-venv/bin/pip install -c scripts/constraints.txt torch==2.13.0 transformers==5.22.2 openvino==2026.4.1
    zoo-venv/bin/pip install -c scripts/constraints.txt --no-deps pytorchcv==0.0.74
    zoo-venv/bin/python zoo/make_architectures.py [NAME…]

Each model is built from its package's own definition, converted by OpenVINO with static shapes in f32, and stripped of its
weights. A constant is a weight if it changes when the parameters of the model change; so every model is built twice, with
other parameters each time, and the constants are compared. A weight is shipped as the mean and the deviation that its values
are to have; every other constant (shapes, indices, axes, masks, scalars) is shipped as its bytes.

All parameters are random before the conversion, also those that begin as zeros and ones: otherwise the conversion drops a bias
of zeros or a scale of ones, and the graph would not be that of the trained model. torch must be the pinned version (see
scripts/constraints.txt); pytorchcv's modules are imported one by one because its model provider wants torchvision.
"""

import collections
import dataclasses
import importlib
import json
import lzma
import math
import pathlib
import re
import sys
import tempfile
import typing
import warnings
import xml.etree.ElementTree as ElementTree

import numpy
import openvino
import torch
import transformers
from openvino import opset13 as ops
from openvino.passes import ConstantFolding, Manager
from openvino.utils import replace_node, replace_output_update_name

ZOO = pathlib.Path(__file__).resolve().parent
# Bytes; where each constant begins in the file of weights.
ALIGNMENT = 64
# Ops that only change the form of a tensor: a weight's use is looked for behind them.
FORM_OPS = {"Reshape", "Transpose", "Unsqueeze", "Squeeze", "Convert"}


@dataclasses.dataclass
class Input:
    name: str
    shape: list
    type: str = "f32"
    # Integers: the least and the greatest value that makes sense.
    least: int = 0
    most: int = 0

    def example(self):
        if self.type == "f32":
            return torch.randn(self.shape)
        return torch.randint(self.least, self.most + 1, self.shape)

    def described(self):
        entry = {"name": self.name, "type": self.type, "shape": self.shape}
        return entry | ({"least": self.least, "most": self.most} if self.type != "f32" else {})


@dataclasses.dataclass
class Architecture:
    name: str
    title: str
    source: str
    licence: str
    inputs: list
    outputs: list
    build: typing.Callable[[], torch.nn.Module]


class TinyBranches(torch.nn.Module):
    """Three branches of unequal work, joined; then a residual block."""

    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 16, 3, padding=1)
        self.point = torch.nn.Conv2d(16, 16, 1)
        self.square_in = torch.nn.Conv2d(16, 12, 1)
        self.square_out = torch.nn.Conv2d(12, 24, 3, padding=1)
        self.pooled = torch.nn.Conv2d(16, 8, 1)
        self.residual = torch.nn.Conv2d(48, 48, 3, padding=1)
        self.classes = torch.nn.Linear(48, 10)

    def forward(self, image):
        stem = torch.relu(self.stem(image))
        point = torch.relu(self.point(stem))
        square = torch.relu(self.square_out(torch.relu(self.square_in(stem))))
        pooled = torch.relu(self.pooled(torch.nn.functional.max_pool2d(stem, 3, 1, 1)))
        joined = torch.cat([point, square, pooled], 1)
        joined = torch.relu(joined + self.residual(joined))
        return self.classes(joined.mean((2, 3)))


class TinyPair(torch.nn.Module):
    """Two inputs, two towers, two outputs; one output reads both towers."""

    def __init__(self):
        super().__init__()
        self.image_in = torch.nn.Conv2d(1, 8, 3, stride=2, padding=1)
        self.image_out = torch.nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.vector_in = torch.nn.Linear(32, 64)
        self.vector_out = torch.nn.Linear(64, 16)
        self.score = torch.nn.Linear(32, 4)

    def forward(self, image, vector):
        tower = torch.relu(self.image_out(torch.relu(self.image_in(image))))
        code = torch.tanh(self.vector_out(torch.relu(self.vector_in(vector))))
        both = torch.cat([tower.mean((2, 3)), code], 1)
        return self.score(both), code


def image_model(name, title, module, size, constructor=None):
    def build():
        return getattr(importlib.import_module(f"pytorchcv.models.{module}"), constructor or name)()

    return Architecture(name, title, f"pytorchcv 0.0.74, {constructor or name}", "MIT",
                        [Input("image", [1, 3, size, size])], ["logits"], build)


def text_inputs(length, vocabulary, with_segments=False):
    inputs = [Input("input_ids", [1, length], "i64", 0, vocabulary - 1), Input("attention_mask", [1, length], "i64", 1, 1)]
    return inputs + ([Input("token_type_ids", [1, length], "i64", 0, 1)] if with_segments else [])


def transformer(name, title, inputs, outputs, model, config, **settings):
    def build():
        settings_used = config(attn_implementation="eager", **settings)
        return getattr(transformers, model)(settings_used)

    return Architecture(name, title, f"transformers {transformers.__version__}, {model}", "Apache-2.0", inputs, outputs, build)


ARCHITECTURES = [
    Architecture("tiny-branches", "Three convolution branches and a residual block, for tests", "ours", "that of this project",
                 [Input("image", [1, 3, 32, 32])], ["logits"], TinyBranches),
    Architecture("tiny-pair", "Two inputs, two towers, two outputs, for tests", "ours", "that of this project",
                 [Input("image", [1, 1, 28, 28]), Input("vector", [1, 32])], ["score", "code"], TinyPair),
    transformer("tiny-bert", "BERT with two layers of width 32, for tests", text_inputs(16, 200, True),
                ["last_hidden_state", "pooler_output"], "BertModel", transformers.BertConfig, vocab_size=200, hidden_size=32,
                num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, max_position_embeddings=32),
    image_model("alexnet", "AlexNet", "alexnet", 224),
    image_model("squeezenet", "SqueezeNet 1.1", "squeezenet", 224, "squeezenet_v1_1"),
    image_model("bninception", "BN-Inception (GoogLeNet with batch normalisation)", "bninception", 224),
    image_model("resnet50", "ResNet-50", "resnet", 224),
    image_model("inceptionv3", "Inception-V3", "inceptionv3", 299),
    image_model("inceptionv4", "Inception-V4", "inceptionv4", 299),
    transformer("bert-base", "BERT base, 128 tokens", text_inputs(128, 30522, True),
                ["last_hidden_state", "pooler_output"], "BertModel", transformers.BertConfig),
    transformer("gpt2", "GPT-2 (124M), 64 tokens, no cache", text_inputs(64, 50257), ["logits"],
                "GPT2LMHeadModel", transformers.GPT2Config, use_cache=False),
    transformer("swin-t", "Swin Transformer, tiny", [Input("pixel_values", [1, 3, 224, 224])], ["logits"],
                "SwinForImageClassification", transformers.SwinConfig, num_labels=1000),
]


def with_random_parameters(module, seed):
    torch.manual_seed(seed)
    with torch.no_grad():
        for values in [*module.parameters(), *module.buffers()]:
            if values.dtype != torch.float32:
                continue
            if values.dim() > 1:
                values.normal_(0, values[0].numel() ** -0.5)
            else:
                values.uniform_(0.5, 1.5)
    return module.eval()


def is_swap_of_last_two(node):
    if node.get_type_name() != "Transpose":
        return False
    order = node.input_value(1).get_node()
    rank = len(node.get_output_shape(0))
    return (order.get_type_name() == "Constant"
            and list(order.get_data()) == [*range(rank - 2), rank - 1, rank - 2])


def parts_of_mask(mask):
    """A bias of weights and a mask of values, where the two are added first: each stays what it is."""
    node = mask.get_node()
    return node.input_values() if node.get_type_name() == "Add" else [mask]


def write_out_attention(model):
    """The conversion fuses attention in some models and not in others; the parts are what can be placed."""
    for node in model.get_ordered_ops():
        if node.get_type_name() != "ScaledDotProductAttention":
            continue
        query, key, value, *rest = node.input_values()
        swapped = is_swap_of_last_two(key.get_node())
        scale = rest[1] if len(rest) > 1 else ops.constant(numpy.float32(query.get_shape()[-1] ** -0.5))
        made = [ops.matmul(query, key.get_node().input_value(0) if swapped else key, False, not swapped)]
        made.append(ops.multiply(made[-1], scale))
        if rest and rest[0].get_partial_shape().rank.get_length() > 0:  # a scalar mask is none
            for part in parts_of_mask(rest[0]):
                made.append(ops.add(made[-1], part))
        made.append(ops.softmax(made[-1], axis=-1))
        made.append(ops.matmul(made[-1], value, False, False))
        for part in made:
            part.set_friendly_name(node.get_friendly_name())
        replace_node(node, made[-1])


def fold_constants(model):
    """Shapes are static, so everything that only computes shapes goes. The conversion has marked such ops to be kept, and
    reading the model again loses the marks."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.xml"
        openvino.save_model(model, path, compress_to_fp16=False)
        model = openvino.Core().read_model(path).clone()
    manager = Manager()
    manager.register_pass(ConstantFolding())
    manager.run_passes(model)
    return model


def drop_what_does_nothing(model):
    """What the known shapes make superfluous. OpenVINO's own clean-up would also melt masks and weights together."""
    for node in model.get_ordered_ops():
        kind = node.get_type_name()
        if kind == "BitwiseAnd" and all(is_constant(value) for value in node.input_values()):  # OpenVINO does not fold it
            one, other = (value.get_node().get_data() for value in node.input_values())
            replace_node(node, ops.constant(numpy.bitwise_and(one, other)))
        if kind not in ("Pad", "Broadcast", "Reshape") or not node.get_output_size():
            continue
        source = node.input_value(0)
        if kind == "Reshape" and source.get_node().get_type_name() == "Reshape":
            reshaped = ops.reshape(source.get_node().input_value(0), list(node.get_output_shape(0)), special_zero=False)
            reshaped.set_friendly_name(node.get_friendly_name())
            replace_node(node, reshaped)
            node, source = reshaped, reshaped.input_value(0)
        if list(source.get_shape()) == list(node.get_output_shape(0)):
            replace_output_update_name(node.output(0), source)


def module_path(name):
    match = re.match(r"__module\.(?:model\.)?([^/]*)/", name)
    return match.group(1) if match else ""


def first_reader(node):
    """The same port in every run; OpenVINO hands out the readers of a value in no order."""
    return min(node.output(0).get_target_inputs(), key=lambda port: (port.get_node().get_friendly_name(), port.get_index()))


def rename(model):
    """PATH/Type after the module that the op comes from, counted where a module has several: readable and unique."""
    seen = collections.Counter()

    def unique(name):
        seen[name] += 1
        return name if seen[name] == 1 else f"{name}_{seen[name]}"

    nodes = model.get_ordered_ops()
    for node in nodes:
        if node.get_type_name() not in ("Constant", "Parameter", "Result"):
            path = module_path(node.get_friendly_name())
            node.set_friendly_name(unique(f"{path}/{node.get_type_name()}" if path else node.get_type_name()))
    for node in nodes:
        if node.get_type_name() == "Constant":
            target = first_reader(node)
            node.set_friendly_name(unique(f"{target.get_node().get_friendly_name()}/constant{target.get_index()}"))
        for output in node.outputs():
            output.get_tensor().set_names(set())


def name_ends(model, architecture):
    for asked, port in zip(architecture.inputs, model.inputs, strict=True):
        port.get_node().set_friendly_name(asked.name)
        port.get_tensor().set_names({asked.name})
    for name, port in zip(architecture.outputs, model.outputs, strict=True):
        port.get_node().set_friendly_name(f"{name}/Result")
        port.get_tensor().set_names({name})


def in_order_of(architecture, parameters):
    by_name = {name: node for node in parameters for name in [node.get_friendly_name(), *node.output(0).get_names()]}
    return [by_name[asked.name] for asked in architecture.inputs]


def check_equal(module, model, example):
    """The graph that is shipped computes what the module computes."""
    with torch.no_grad():
        answer = module(**example) if isinstance(example, dict) else module(example)
    expected = list(answer.values()) if isinstance(answer, dict) else answer if isinstance(answer, tuple) else [answer]
    compiled = openvino.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    found = compiled([value.numpy() for value in (example.values() if isinstance(example, dict) else [example])])
    for port, values in zip(compiled.outputs, expected, strict=True):
        values = values.numpy()
        largest = float(numpy.abs(values).max())
        difference = float(numpy.abs(found[port] - values).max())
        assert largest < 1e9 and difference < 1e-4 * largest, f"{port.any_name}: {difference} of {largest}"


def converted(architecture, seed):
    module = with_random_parameters(architecture.build(), seed)
    example = {asked.name: asked.example() for asked in architecture.inputs}
    if architecture.licence == "MIT":  # pytorchcv calls its only input x
        example = next(iter(example.values()))
        shapes = architecture.inputs[0].shape
    else:
        shapes = [(asked.name, asked.shape) for asked in architecture.inputs]
    model = openvino.convert_model(module, example_input=example, input=shapes)
    write_out_attention(model)
    model = fold_constants(model)
    drop_what_does_nothing(model)
    parameters = model.get_parameters() if len(architecture.inputs) == 1 else in_order_of(architecture, model.get_parameters())
    # A new model leaves behind what the conversion noted about itself.
    model = openvino.Model(model.get_results(), parameters, architecture.name)
    rename(model)
    name_ends(model, architecture)
    assert not model.is_dynamic(), architecture.name
    check_equal(module, model, example)
    return model


def constants_of(model):
    return {node.get_friendly_name(): node for node in model.get_ordered_ops() if node.get_type_name() == "Constant"}


def use_of(constant):
    """The op that works with the constant, and the port where it reads it."""
    port = first_reader(constant)
    while port.get_node().get_type_name() in FORM_OPS:
        port = first_reader(port.get_node())
    return port.get_node(), port.get_index()


def is_constant(value):
    node = value.get_node()
    while node.get_type_name() in FORM_OPS:
        node = node.input_value(0).get_node()
    return node.get_type_name() == "Constant"


def readers(node):
    return [target.get_node() for output in node.outputs() for target in output.get_target_inputs()]


def gain_after(node):
    """Variance that a layer should add for its output to stay as large as its input, by what comes after it."""
    following = readers(node)
    while len(following) == 1 and (following[0].get_type_name() in FORM_OPS or (
            following[0].get_type_name() == "Add" and any(is_constant(value) for value in following[0].input_values()))):
        following = readers(following[0])
    kinds = {reader.get_type_name() for reader in following}
    if "Relu" in kinds or "Gelu" in kinds:
        return 2.0
    return 0.5 if "Add" in kinds else 1.0  # the second: a branch that is added to another


def mean_and_deviation(constant):
    """He's rule for what multiplies (variance 2 / fan-in before a rectifier), about 1 for scales, about 0 for shifts."""
    node, port = use_of(constant)
    kind = node.get_type_name()
    shape = list(constant.get_output_shape(0))
    if kind in ("Convolution", "GroupConvolution") and port == 1:
        fan_in = math.prod(node.input_value(1).get_shape()[1 if kind == "Convolution" else 2:])
        return 0.0, math.sqrt(gain_after(node) / fan_in)
    if kind == "MatMul":
        fan_in = node.input_value(0).get_shape()[-2 if port == 0 else -1]
        return 0.0, math.sqrt(gain_after(node) / fan_in)
    if kind == "Gather" and port == 0:
        return 0.0, 0.02 if shape[0] > 1000 else 0.1
    if kind == "Multiply":
        return 1.0, 0.1
    if kind == "Add":
        return 0.0, 0.05
    raise SystemExit(f"{constant.get_friendly_name()}: no rule for weights read by {kind}, port {port}")


def rounded(number):
    return float(f"{number:.6g}")


def aligned(xml, places):
    """OpenVINO writes constants one after the other; a flag of one byte then leaves all that follow at odd addresses."""
    moved, end = {}, 0
    for place in places:
        moved[place["offset"]] = begin = -(-end // ALIGNMENT) * ALIGNMENT
        end = begin + (4 * place["count"] if "count" in place else len(place["bytes"]) // 2)
        place["offset"] = begin
    xml = re.sub(r'offset="(\d+)" size=', lambda match: f'offset="{moved[int(match.group(1))]}" size=', xml)
    return {"xml": xml, "size": end, "constants": places}


def shipped(model, other):
    """The XML and what belongs into each place of the weights file."""
    constants, others = constants_of(model), constants_of(other)
    assert constants.keys() == others.keys()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.xml"
        openvino.serialize(model, str(path))
        xml, binary = path.read_text(), path.with_suffix(".bin").read_bytes()
    places = {}
    for layer in ElementTree.fromstring(xml).iter("layer"):
        if layer.get("type") != "Const":
            continue
        data, constant = layer.find("data"), constants[layer.get("name")]
        offset, size = int(data.get("offset")), int(data.get("size"))
        if (constant.get_data() == others[layer.get("name")].get_data()).all():
            place = {"offset": offset, "bytes": binary[offset:offset + size].hex()}
        else:
            assert data.get("element_type") == "f32", layer.get("name")
            assert numpy.abs(constant.get_data()).max() < 50, f"{layer.get('name')}: a mask and weights in one constant"
            mean, deviation = mean_and_deviation(constant)
            place = {"offset": offset, "count": size // 4, "mean": mean, "deviation": rounded(deviation)}
        assert places.setdefault(offset, place) == place or "bytes" in place, f"{layer.get('name')}: two uses that differ"
    return aligned(xml, [places[offset] for offset in sorted(places)])


def described(architecture, model, content):
    weights = sum(place["count"] for place in content["constants"] if "count" in place)
    kinds = [node.get_type_name() for node in model.get_ops()]
    return {
        "name": architecture.name,
        "title": architecture.title,
        "ops": sum(kind not in ("Constant", "Parameter", "Result") for kind in kinds),
        "parameters": weights,
        "bytes": content["size"],
        "inputs": [asked.described() for asked in architecture.inputs],
        "outputs": [{"name": name, "type": "f32", "shape": list(port.shape)}
                    for name, port in zip(architecture.outputs, model.outputs)],
        "source": architecture.source,
        "licence": architecture.licence,
    }


def main():
    warnings.filterwarnings("ignore")
    asked = sys.argv[1:]
    index_path = ZOO / "index.json"
    known = {entry["name"]: entry for entry in json.loads(index_path.read_text())} if index_path.exists() else {}
    (ZOO / "architectures").mkdir(exist_ok=True)
    for architecture in ARCHITECTURES:
        if asked and architecture.name not in asked:
            continue
        model, other = (converted(architecture, seed) for seed in (1, 2))
        content = shipped(model, other)
        known[architecture.name] = described(architecture, model, content)
        text = json.dumps(content, separators=(",", ":")).encode()
        packed = lzma.compress(text, preset=9 | lzma.PRESET_EXTREME)
        (ZOO / f"architectures/{architecture.name}.json.xz").write_bytes(packed)
        print(f"{architecture.name}: {known[architecture.name]['ops']} ops, {len(text)} bytes, packed {len(packed)}", flush=True)
    index = [known[architecture.name] for architecture in ARCHITECTURES if architecture.name in known]
    index_path.write_text("[\n" + ",\n".join(json.dumps(entry) for entry in index) + "\n]\n")


if __name__ == "__main__":
    main()
