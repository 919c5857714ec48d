"""Small models that show what real ones do: branches, attention, in-place operators, views."""

from __future__ import annotations

import torch
from torch import nn


class Convolution(nn.Module):
    def __init__(self, inputs: int, outputs: int, size: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, size, padding=size // 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu_(self.conv(x))


class Branches(nn.Module):
    """Two blocks of four branches that end in a concatenation, as in Inception."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = Convolution(3, 8, 3)
        self.blocks = nn.ModuleList([self._block(8), self._block(16)])
        self.head = nn.Linear(16, 10)

    @staticmethod
    def _block(width: int) -> nn.ModuleList:
        return nn.ModuleList(
            [
                Convolution(width, 4, 1),
                nn.Sequential(Convolution(width, 4, 1), Convolution(4, 4, 3)),
                nn.Sequential(Convolution(width, 4, 1), Convolution(4, 4, 3), Convolution(4, 4, 3)),
                nn.Sequential(nn.AvgPool2d(3, 1, 1), Convolution(width, 4, 1)),
            ]
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        for block in self.blocks:
            x = torch.cat([branch(x) for branch in block], 1)  # type: ignore[union-attr]
        result: torch.Tensor = self.head(x.mean((2, 3)))
        return result


class InPlaceAndViews(nn.Module):
    """Writes through views of intermediate results, and reads them later under other names."""

    def __init__(self) -> None:
        super().__init__()
        self.wide = nn.Linear(8, 16)
        self.narrow = nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.wide(x)
        left, right = y.chunk(2, dim=-1)
        left.mul_(2)  # also changes y
        y[:, 0].add_(1)  # also changes left
        z = y + torch.arange(16, device=x.device)
        z.t()[3].zero_()
        return self.narrow(z), left * right


def branches() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    return Branches().eval(), (torch.randn(1, 3, 16, 16),)


def transformer() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.1)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval(), (torch.randn(2, 6, 32),)


def in_place_and_views() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    return InPlaceAndViews().eval(), (torch.randn(4, 8),)


ALL = [branches, transformer, in_place_and_views]
