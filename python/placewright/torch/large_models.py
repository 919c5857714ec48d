"""Problems about models that are larger than any machine at hand, from their configuration alone.

    model = placewright.torch.large_models.MODELS["llama-70b"]
    problem = model.problem({"a": "A100-80GB", "b": "A100-80GB", "c": "L40S"}, link="PCIe-4.0-x16")
    plan = placewright.plan(problem)

A large model is a few types of layers, each repeated. One layer of each type is built of fake tensors, which have
shapes and no values, and captured; its atoms are then repeated as often as the configuration says. So nothing is
downloaded, and neither memory nor time depends on the size of the model. Times are estimated (placewright.catalogue).

The models are like the published ones in their sizes, not copies of them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

import placewright
from placewright import catalogue
from placewright.torch.atoms import Atom
from placewright.torch.chain import Chain, chain_of, size_of
from placewright.torch.training import with_training

_MATRIX_PRODUCTS = ("mm", "bmm", "linear", "convolution", "conv2d", "matmul", "attention")
_HALF = (torch.float16, torch.bfloat16)


@dataclasses.dataclass(frozen=True)
class Layers:
    """`count` equal layers; `build` makes one."""

    name: str
    count: int
    build: Callable[[], nn.Module]


@dataclasses.dataclass(frozen=True)
class LargeModel:
    """Layers in order: each takes what the one before it returns, the first what `inputs` makes."""

    name: str
    layers: Sequence[Layers]
    inputs: Callable[[], Sequence[torch.Tensor]]
    dtype: torch.dtype = torch.float32

    def problem(
        self, devices: Mapping[str, str], link: str, *, objective: str = "latency", training: bool = False,
        optimizer_states: int = 2, **rules: object,
    ) -> placewright.Problem:  # fmt: skip
        """The problem of placing the model on devices, which are of kinds of the catalogue, joined by equal links; with
        `training` that of a pipeline in training (`trained`)."""
        document = self.document(devices, link, objective=objective, **rules)
        return placewright.Problem.from_document(
            trained(document, optimizer_states=optimizer_states) if training else document
        )

    def document(
        self, devices: Mapping[str, str], link: str, *, objective: str = "latency", **rules: object
    ) -> dict[str, Any]:
        """What the problem file holds."""
        kinds = {name: catalogue.kinds()[name] for name in dict.fromkeys(devices.values())}
        wire = catalogue.links()[link]
        ops, tensors, weights = _Unrolling(self, kinds).run()
        return {
            "placewright": "problem",
            "version": 3,
            "name": self.name,
            "unit": "ms",
            "objective": objective,
            "rules": rules,
            "kinds": [{"name": kind} for kind in kinds],
            "devices": [{"name": n, "kind": k, "memory": kinds[k].memory} for n, k in devices.items()],
            "interconnect": {
                "kind": "links",
                "all": {"latency": wire.latency * 1e3, "bandwidth": wire.bandwidth / 1e3},
            },
            "ops": ops,
            "tensors": tensors,
            "weights": weights,
            "origin": ["op times: estimated from flops and bytes, not measured; layers traced with fake tensors"],
        }


@contextlib.contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """Weights and inputs made inside are of this type."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


class _Unrolling:
    """The ops and tensors of all layers, from one traced layer of each type."""

    def __init__(self, model: LargeModel, kinds: Mapping[str, catalogue.Kind]) -> None:
        self.model = model
        self.kinds = kinds
        self.ops: list[dict[str, Any]] = []
        self.tensors: list[dict[str, Any]] = []
        self.weights: list[dict[str, Any]] = []

    def run(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
        with FakeTensorMode(allow_non_fake_inputs=True), _default_dtype(self.model.dtype):
            flowing: Sequence[torch.Tensor] = list(self.model.inputs())
            sources: list[dict[str, Any] | None] = [None] * len(flowing)  # the tensors that hold them
            for layers in self.model.layers:
                layer = layers.build().eval()
                chain = chain_of(layer, tuple(flowing))
                costs = [_cost(atom, chain, self.kinds) for atom in chain.atoms.atoms]
                for number in range(layers.count):
                    prefix = f"{layers.name}.{number}." if layers.count > 1 else f"{layers.name}."
                    sources = self._layer(prefix, chain, costs, sources)
                flowing = [node.meta["val"] for node in chain.captured.outputs]
        self.tensors = [tensor for tensor in self.tensors if tensor["to"]]
        return self.ops, self.tensors, self.weights

    def _layer(
        self,
        prefix: str,
        chain: Chain,
        costs: Sequence[dict[str, Any]],
        sources: Sequence[dict[str, Any] | None],
    ) -> list[dict[str, Any] | None]:
        """Adds a layer; returns the tensors that the next one reads."""
        made: dict[torch.fx.Node, dict[str, Any] | None] = dict(zip(chain.captured.inputs, sources, strict=True))
        shared = chain.shared_weights()
        for atom in chain.atoms.atoms:
            name = prefix + atom.name
            self.ops.append({"name": name, **costs[atom.index]})
            for node in atom.reads:
                tensor = made.get(node)
                if tensor is not None and name not in tensor["to"]:
                    tensor["to"].append(name)
            for node in atom.nodes:
                if node in atom.writes or node in chain.captured.outputs:
                    made[node] = {"name": prefix + node.name, "from": name, "to": [], "bytes": size_of(node)}
                    self.tensors.append(made[node])  # type: ignore[arg-type]
        for weight, readers in shared.items():
            users = [prefix + chain.atoms.atoms[reader].name for reader in readers]
            self.weights.append({"name": prefix + weight, "bytes": chain.weight_bytes(weight), "ops": users})
        return [made[node] for node in chain.captured.outputs]


def work_of(atom: Atom, chain: Chain) -> catalogue.Work:
    """What an atom of a captured model does, from shapes alone. Views move nothing."""
    if all(isinstance(node.target, torch._ops.OpOverload) and node.target.is_view for node in atom.nodes):
        return catalogue.Work(0, 0, of_matrices=False, in_half=False)
    weights = [node for node in atom.reads if node in chain.weight_names]
    gathers = any("embedding" in str(node.target) for node in atom.nodes)
    written = sum(size_of(node) for node in atom.writes if node.target is not operator.getitem)
    read = sum(size_of(node) for node in atom.reads if node not in weights)
    touched = written + read + (written if gathers else sum(size_of(node) for node in weights))
    products = any(part in str(node.target) for node in atom.nodes for part in _MATRIX_PRODUCTS)
    half = any(node.meta["val"].dtype in _HALF for node in atom.writes if isinstance(node.meta["val"], torch.Tensor))
    return catalogue.Work(atom.flops, touched, products, half)


def _cost(atom: Atom, chain: Chain, kinds: Mapping[str, catalogue.Kind]) -> dict[str, Any]:
    """An atom as an op of a problem file, without its name; times in milliseconds."""
    shared = chain.shared_weights()
    weights = [node for node in atom.reads if node in chain.weight_names]
    work = work_of(atom, chain)
    return {
        "type": "+".join(str(getattr(node.target, "__name__", node.target)) for node in atom.nodes),
        "memory": sum(size_of(node) for node in weights if chain.weight_names[node] not in shared),
        "flops": work.flops,
        "time": [1e3 * kind.seconds(work) for kind in kinds.values()],
    }


def trained(document: Mapping[str, Any], *, optimizer_states: int = 2) -> dict[str, Any]:
    """The problem of training the model of a problem, for the throughput of a pipeline. A backward op takes twice the
    time of its op: of a matrix product the gradients of both operands, of other ops the gradient beside what the
    forward pass kept, which is what it has made."""
    made = {op["name"]: 0.0 for op in document["ops"]}
    for tensor in document["tensors"]:
        made[tensor["from"]] += tensor["bytes"]
    return with_training(
        document,
        times=[[2 * time for time in op["time"]] for op in document["ops"]],
        kept=list(made.values()),
        gradients=[tensor["bytes"] for tensor in document["tensors"]],
        optimizer_states=optimizer_states,
    )


# --- layers
# --------------------------------------------------------------------------------------------------


class Attention(nn.Module):
    """Attention over the second-to-last dimension; fewer heads for keys and values where asked for. With a `context`
    it is one step of generation: the keys and values of so many earlier tokens lie in a cache, which is read."""

    def __init__(self, width: int, heads: int, kv_heads: int | None = None, context: int = 0, batch: int = 1) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads or heads, width // heads
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * self.kv_heads * self.size)
        self.out = nn.Linear(width, width)
        if context:
            self.cache: torch.Tensor
            self.register_buffer("cache", torch.empty(2, batch, self.kv_heads, context, self.size))
        self.context = context

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The sum of values, weighted by how well keys fit the queries."""
        *batch, length, width = x.shape
        q = self.query(x).view(-1, length, self.heads, self.size).transpose(1, 2)
        k, v = self.key_value(x).view(-1, length, 2, self.kv_heads, self.size).permute(2, 0, 3, 1, 4)
        if self.context:
            k, v = torch.cat([self.cache[0], k], 2), torch.cat([self.cache[1], v], 2)
        groups = self.heads // self.kv_heads
        if groups > 1:
            k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
        scores = torch.softmax(q @ k.transpose(-1, -2) / self.size**0.5, -1)
        result: torch.Tensor = self.out((scores @ v).transpose(1, 2).reshape(*batch, length, width))
        return result


class Block(nn.Module):
    """A transformer layer with a plain feed-forward part, as in GPT."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.attention = Attention(width, heads)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attention, then the feed-forward part, each added to its input."""
        x = x + self.attention(self.norms[0](x))
        result: torch.Tensor = x + self.narrow(torch.nn.functional.gelu(self.wide(self.norms[1](x))))
        return result


class GatedBlock(nn.Module):
    """A transformer layer with a gated feed-forward part, as in Llama; with `experts` several of them, of which each
    token visits two. The router is taken to send every expert an equal share of the tokens."""

    def __init__(self, width: int, heads: int, kv_heads: int, inner: int, experts: int = 1, context: int = 0) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(2))
        self.attention = Attention(width, heads, kv_heads, context)
        self.router = nn.Linear(width, experts) if experts > 1 else None
        self.parts = nn.ModuleList(
            nn.ModuleList([nn.Linear(width, inner), nn.Linear(width, inner), nn.Linear(inner, width)])
            for _ in range(experts)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attention, then the feed-forward part or the experts, each added to its input."""
        x = x + self.attention(self.norms[0](x))
        y = self.norms[1](x)
        if self.router is None:
            return x + _gated(self.parts[0], y)
        share = torch.softmax(self.router(y), -1)
        visits = max(1, 2 * y.shape[1] // len(self.parts))
        found = [_gated(part, y[:, :visits]) * share[:, :visits, :1] for part in self.parts]
        mixed = torch.cat(found, 1)[:, : 2 * y.shape[1]].view(y.shape[0], 2, y.shape[1], y.shape[2])
        return x + mixed.sum(1)


def _gated(part: nn.Module, x: torch.Tensor) -> torch.Tensor:
    gate, up, down = part.children()
    result: torch.Tensor = down(torch.nn.functional.silu(gate(x)) * up(x))
    return result


class Embedding(nn.Module):
    """Tokens to vectors."""

    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary, width)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """A row of the table for each token."""
        result: torch.Tensor = self.table(tokens)
        return result


class Windows(nn.Module):
    """A Swin layer: attention inside windows of an image."""

    def __init__(self, width: int, heads: int, window: int = 8) -> None:
        super().__init__()
        self.block, self.window = Block(width, heads), window

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Cuts the image into windows and joins them again."""
        n, h, w, c = x.shape
        s = self.window
        cut = x.view(n, h // s, s, w // s, s, c).transpose(2, 3).reshape(-1, s * s, c)
        joined: torch.Tensor = self.block(cut).view(n, h // s, w // s, s, s, c).transpose(2, 3)
        return joined.reshape(n, h, w, c)


class Merging(nn.Module):
    """Four neighbouring patches become one of twice the width."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.reduce = nn.Linear(4 * width, 2 * width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Half the height and the width."""
        n, h, w, c = x.shape
        cut = x.view(n, h // 2, 2, w // 2, 2, c).transpose(2, 3).reshape(n, h // 2, w // 2, 4 * c)
        result: torch.Tensor = self.reduce(cut)
        return result


class Evoformer(nn.Module):
    """An AlphaFold-2 layer: attention over rows and columns of the alignment, an outer product into the pairs,
    attention over rows and columns of the pairs."""

    def __init__(self, width: int, pair: int, heads: int) -> None:
        super().__init__()
        self.rows, self.columns = Block(width, heads), Attention(width, heads)
        self.left, self.right = nn.Linear(width, 32), nn.Linear(width, 32)
        self.outer = nn.Linear(32 * 32, pair)
        self.pair_rows, self.pair_columns = Attention(pair, max(1, pair // 32)), Block(pair, max(1, pair // 32))

    def forward(self, alignment: torch.Tensor, pairs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The new alignment and the new pairs."""
        alignment = alignment + self.columns(alignment.transpose(0, 1)).transpose(0, 1)
        alignment = self.rows(alignment)
        product = torch.einsum("sia,sjb->ijab", self.left(alignment), self.right(alignment)).flatten(2)
        pairs = pairs + self.outer(product)
        pairs = pairs + self.pair_rows(pairs)
        return alignment, self.pair_columns(pairs.transpose(0, 1)).transpose(0, 1)


# --- models
# --------------------------------------------------------------------------------------------------


def gpt(name: str, layers: int, width: int, heads: int, length: int = 2048, vocabulary: int = 50257) -> LargeModel:
    """Like GPT-3."""
    return LargeModel(
        name,
        [
            Layers("embedding", 1, lambda: Embedding(vocabulary, width)),
            Layers("layers", layers, lambda: Block(width, heads)),
            Layers("head", 1, lambda: nn.Sequential(nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False))),
        ],
        lambda: [torch.zeros(1, length, dtype=torch.long)],
    )


def llama(
    name: str, layers: int, width: int, heads: int, inner: int, *, experts: int = 1, context: int = 0,
    length: int = 2048, vocabulary: int = 128256,
) -> LargeModel:  # fmt: skip
    """Like Llama 3, or with `experts` like Mixtral; with a `context` one step of generation after so many tokens."""
    return LargeModel(
        name,
        [
            Layers("embedding", 1, lambda: Embedding(vocabulary, width)),
            Layers("layers", layers, lambda: GatedBlock(width, heads, 8, inner, experts, context)),
            Layers("head", 1, lambda: nn.Sequential(nn.RMSNorm(width), nn.Linear(width, vocabulary, bias=False))),
        ],
        lambda: [torch.zeros(1, 1 if context else length, dtype=torch.long)],
        torch.bfloat16,
    )


def swin(name: str, width: int, depth: int, image: int = 1536) -> LargeModel:
    """Like Swin: four stages, the third with `depth` layers."""
    layers = [Layers("patches", 1, lambda: nn.Linear(48, width))]
    for stage, count in enumerate((2, 2, depth, 2)):
        size = width * 2**stage
        if stage:
            layers.append(Layers(f"merging{stage}", 1, lambda size=size: Merging(size // 2)))  # type: ignore[misc]
        layers.append(Layers(f"stage{stage}", count, lambda size=size: Windows(size, size // 32)))  # type: ignore[misc]
    return LargeModel(name, layers, lambda: [torch.zeros(1, image // 4, image // 4, 48)])


def alphafold(name: str, layers: int, width: int, pair: int, rows: int = 128, length: int = 256) -> LargeModel:
    """Like the Evoformer of AlphaFold 2."""
    return LargeModel(
        name,
        [Layers("evoformer", layers, lambda: Evoformer(width, pair, width // 32))],
        lambda: [torch.zeros(rows, length, width), torch.zeros(length, length, pair)],
    )


MODELS: Mapping[str, LargeModel] = {
    model.name: model
    for model in (
        swin("swin-1.8b", 512, 26),
        swin("swin-6.6b", 768, 50),
        swin("swin-13b", 1024, 56),
        gpt("gpt3-330m", 24, 1024, 16),
        gpt("gpt3-1.3b", 24, 2048, 32),
        gpt("gpt3-2.7b", 32, 2560, 32),
        gpt("gpt3-13b", 40, 5120, 40),
        alphafold("alphafold2-87m", 60, 256, 128),
        alphafold("alphafold2-930m", 64, 768, 512),
        alphafold("alphafold2-2.4b", 89, 1024, 768),
        alphafold("alphafold2-3.2b", 118, 1024, 768),
        llama("llama-8b", 32, 4096, 32, 14336),
        llama("llama-70b", 80, 8192, 64, 28672),
        llama("llama-70b-generation", 80, 8192, 64, 28672, context=8192),
        llama("mixtral-8x7b", 32, 4096, 32, 14336, experts=8, vocabulary=32000),
    )
}


def parameters(document: Mapping[str, Any], element_size: int) -> float:
    """How many weights the ops of a problem hold."""
    own = sum(op.get("memory", 0) for op in document["ops"])
    return float(own + sum(weight["bytes"] for weight in document["weights"])) / element_size
