"""Models for `python -m placewright.torch bench bench.torch.models:NAME`, batch 1, batch norms folded, channels last.

Both sides of every comparison get the same folded model. Weights are random, scaled so that activations keep their
size.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable

import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

Made = tuple[nn.Module, tuple[torch.Tensor, ...]]
Factory = Callable[[], Made]


def _fold(model: nn.Module) -> None:
    """Folds a batch norm into the convolution declared just before it, also into the last one of a separable
    convolution; a batch norm with an activation leaves that behind."""
    for parent in model.modules():
        children = list(parent.named_children())
        for (name, first), (after, second) in itertools.pairwise(children):
            if not isinstance(second, nn.BatchNorm2d):
                continue
            owner, last = (first, "pointwise_conv2d") if hasattr(first, "pointwise_conv2d") else (parent, name)
            convolution = getattr(owner, last)
            if isinstance(convolution, nn.Conv2d):
                setattr(owner, last, fuse_conv_bn_eval(convolution, second))
                setattr(parent, after, getattr(second, "act", None) or nn.Identity())


def _scale(model: nn.Module, x: torch.Tensor) -> None:
    """Scales every convolution so that what it computes from x has spread 1; sums of many branches would leave the
    range of f16."""

    def scale(module: nn.Module, _: object, computed: torch.Tensor) -> torch.Tensor:
        spread = computed.std()
        for weights in module.parameters():
            weights.div_(spread)
        return computed / spread

    hooks = [m.register_forward_hook(scale) for m in model.modules() if isinstance(m, nn.Conv2d)]
    model(x)
    for hook in hooks:
        hook.remove()


def _prepare(model: nn.Module, size: int, dtype: torch.dtype) -> Made:
    model.eval().requires_grad_(False)
    x = torch.randn(1, 3, size, size)
    _scale(model, x)
    wanted = model(x)
    _fold(model)
    torch.testing.assert_close(model(x), wanted, rtol=1e-3, atol=1e-3)
    model = model.to("cuda", dtype).to(memory_format=torch.channels_last)
    torch.backends.cudnn.benchmark = True
    return model, (x.to("cuda", dtype).to(memory_format=torch.channels_last),)


def _torchvision(name: str, size: int, dtype: torch.dtype) -> Made:
    import torchvision

    torch.manual_seed(0)
    extra = {"init_weights": False, "aux_logits": False} if name in ("inception_v3", "googlenet") else {}
    return _prepare(getattr(torchvision.models, name)(weights=None, **extra), size, dtype)


def _timm(name: str, size: int, dtype: torch.dtype) -> Made:
    import timm

    torch.manual_seed(0)
    return _prepare(timm.create_model(name, pretrained=False), size, dtype)


inception_v3_f32: Factory = functools.partial(_torchvision, "inception_v3", 299, torch.float32)
inception_v3_f16: Factory = functools.partial(_torchvision, "inception_v3", 299, torch.float16)
googlenet_f32: Factory = functools.partial(_torchvision, "googlenet", 224, torch.float32)
googlenet_f16: Factory = functools.partial(_torchvision, "googlenet", 224, torch.float16)
resnet50_f32: Factory = functools.partial(_torchvision, "resnet50", 224, torch.float32)
resnet50_f16: Factory = functools.partial(_torchvision, "resnet50", 224, torch.float16)
inception_v4_f32: Factory = functools.partial(_timm, "inception_v4", 299, torch.float32)
inception_v4_f16: Factory = functools.partial(_timm, "inception_v4", 299, torch.float16)
pnasnet5_f32: Factory = functools.partial(_timm, "pnasnet5large", 331, torch.float32)
pnasnet5_f16: Factory = functools.partial(_timm, "pnasnet5large", 331, torch.float16)


class Logits(nn.Module):
    """A model of the transformers package as a function from token numbers to one tensor."""

    def __init__(self, inner: nn.Module, output: str) -> None:
        super().__init__()
        self.inner = inner
        self.output = output

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = getattr(self.inner(input_ids=tokens, attention_mask=mask), self.output)
        return result


def _tokens(model: nn.Module, length: int, vocabulary: int, dtype: torch.dtype) -> Made:
    tokens = torch.randint(0, vocabulary, (1, length), device="cuda")
    return model.to("cuda", dtype).eval().requires_grad_(False), (tokens, torch.ones_like(tokens))


def _bert_base(dtype: torch.dtype, length: int = 128) -> Made:
    import transformers

    torch.manual_seed(0)
    config = transformers.BertConfig(attn_implementation="sdpa")
    return _tokens(Logits(transformers.BertModel(config), "last_hidden_state"), length, config.vocab_size, dtype)


def _gpt2(dtype: torch.dtype, length: int = 128) -> Made:
    import transformers

    torch.manual_seed(0)
    config = transformers.GPT2Config(attn_implementation="eager", use_cache=False)
    return _tokens(Logits(transformers.GPT2LMHeadModel(config), "logits"), length, config.vocab_size, dtype)


class Layer(nn.Module):
    """A transformer layer that normalises first."""

    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads = heads
        self.causal = causal
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.queries_keys_values = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.queries_keys_values(self.norm_1(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = self.attend(query, key, value)
        x = x + self.project(mixed.transpose(1, 2).reshape(batch, length, width))
        result: torch.Tensor = x + self.narrow(nn.functional.gelu(self.widen(self.norm_2(x))))
        return result

    def attend(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(query, key, value, is_causal=self.causal)


class CachedLayer(Layer):
    """A layer that sees one more token after `cached` others, whose keys and values it has."""

    def __init__(self, width: int, heads: int, cached: int) -> None:
        super().__init__(width, heads, causal=False)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.randn(1, heads, cached, width // heads))

    def attend(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        return super().attend(query, torch.cat([self.keys, key], 2), torch.cat([self.values, value], 2))


class Transformer(nn.Module):
    """Layers of equal shape, without embeddings: `layers` and what they need to be split by hand."""

    def __init__(self, layers: Iterable[Layer]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def _stack(layers: int, width: int, heads: int, causal: bool, batch: int, length: int, device: str = "cuda") -> Made:
    torch.manual_seed(0)
    with torch.device(device):
        stack = Transformer(Layer(width, heads, causal) for _ in range(layers))
        dtype = torch.float16 if device == "cuda" else torch.float32
        model = stack.to(dtype).eval().requires_grad_(False)
        return model, (torch.randn(batch, length, width, dtype=dtype),)


bert_base_f32: Factory = functools.partial(_bert_base, torch.float32)
bert_base_f16: Factory = functools.partial(_bert_base, torch.float16)
gpt2_f32: Factory = functools.partial(_gpt2, torch.float32)
gpt2_f16: Factory = functools.partial(_gpt2, torch.float16)
bert_large_like: Factory = functools.partial(_stack, 24, 1024, 16, False, 8, 128)
gpt2_xl_like: Factory = functools.partial(_stack, 48, 1600, 25, True, 1, 512)


def transformer(device: str, layers: int, width: int, batch: int) -> Made:
    """An encoder over 128 tokens: f16 on a GPU, f32 on a CPU."""
    return _stack(layers, width, width // 64, False, batch, 128, device)


def gpt2_xl_on_the_cpu(tokens: int, cached: int) -> Made:
    """GPT-2-XL's layers in bfloat16, on the CPU: `tokens` at once, after `cached` others."""
    torch.manual_seed(0)
    with torch.device("cuda"):  # where random numbers are fast
        layers = [CachedLayer(1600, 25, cached) if cached else Layer(1600, 25, causal=True) for _ in range(48)]
        model = Transformer(layers).bfloat16().eval().requires_grad_(False)
    return model.cpu(), (torch.randn(1, tokens, 1600, dtype=torch.bfloat16),)
