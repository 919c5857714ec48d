"""Models for `python -m placewright.torch bench bench.torch.models:NAME`, batch 1, batch norms folded, channels last.

Both sides of every comparison get the same folded model. Weights are random, scaled so that activations keep their
size.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable

import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

Factory = Callable[[], tuple[nn.Module, tuple[torch.Tensor, ...]]]


def _fold(model: nn.Module) -> None:
    """Folds a batch norm into the convolution declared just before it; one with an activation leaves that behind."""
    for parent in model.modules():
        children = list(parent.named_children())
        for (name, first), (after, second) in itertools.pairwise(children):
            if isinstance(first, nn.Conv2d) and isinstance(second, nn.BatchNorm2d):
                setattr(parent, name, fuse_conv_bn_eval(first, second))
                setattr(parent, after, getattr(second, "act", None) or nn.Identity())


def _prepare(model: nn.Module, size: int, dtype: torch.dtype) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
    model.eval().requires_grad_(False)
    x = torch.randn(1, 3, size, size)
    wanted = model(x)
    _fold(model)
    torch.testing.assert_close(model(x), wanted, rtol=1e-3, atol=1e-3)
    model = model.to("cuda", dtype).to(memory_format=torch.channels_last)
    torch.backends.cudnn.benchmark = True
    return model, (x.to("cuda", dtype).to(memory_format=torch.channels_last),)


def _torchvision(name: str, size: int, dtype: torch.dtype) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    import torchvision

    torch.manual_seed(0)
    extra = {"init_weights": False, "aux_logits": False} if name in ("inception_v3", "googlenet") else {}
    return _prepare(getattr(torchvision.models, name)(weights=None, **extra), size, dtype)


def _timm(name: str, size: int, dtype: torch.dtype) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
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
