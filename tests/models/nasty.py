"""Small networks that hold what real exports trip over.

Each one packs many operators into a graph that runs in milliseconds. Integer results are computed from the
inputs by exact operations only, so that two correct engines agree on them to the bit.
"""

from __future__ import annotations

from typing import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Shapes(nn.Module):
    """Shape arithmetic on a dynamic batch: views, expands, splits, stacks, einsum."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 12, 3, padding=1)
        self.row = nn.Parameter(torch.randn(1, 1, 16))
        self.fc = nn.Linear(12 * 8 * 8, 16)
        self.mix = nn.Parameter(torch.randn(3, 4, 5) * 0.3)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        y = self.conv(x)
        n, c, h, w = y.shape
        flat = self.fc(y.view(x.size(0), -1))
        tokens = y.reshape(n, c, h * w).permute(0, 2, 1)
        token = self.row[:, :, :c].expand(n, -1, -1)
        tokens = torch.cat((token, tokens, tokens.flip(1)[:, :2]), dim=1)
        a, b, d = y.chunk(3, dim=1)
        e, f = torch.split(y, [5, 7], dim=1)
        groups = y.view(n, 3, c // 3, h, w).transpose(1, 2).contiguous().view(n, c, h, w)
        mixed = torch.einsum("nghw,kgo->nkohw", a * b + d, self.mix)
        outer = torch.einsum("bic,bjc->bij", tokens, tokens)
        grid = torch.arange(w, dtype=torch.float32).view(1, 1, 1, w).expand(n, 1, h, w)
        stacked = torch.stack((e.mean(1), f.amax(1)), dim=-1)
        tiled = flat.unsqueeze(1).repeat(1, 2, 3) * h
        return flat, outer / c, torch.cat((groups, grid), 1), mixed, stacked, tiled


class Resample(nn.Module):
    """Every way PyTorch changes the resolution of an image."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, padding=1)
        self.up = nn.ConvTranspose2d(16, 8, 4, stride=2, padding=1, groups=4)
        self.up_dilated = nn.ConvTranspose2d(8, 6, 3, stride=(2, 3), dilation=(1, 2), output_padding=(1, 0))
        self.shuffle = nn.PixelShuffle(2)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        y = self.conv(x)
        nearest = F.interpolate(y, scale_factor=2, mode="nearest")
        odd = F.interpolate(y, size=(17, 23), mode="nearest")
        bilinear = F.interpolate(y, scale_factor=(1.5, 2.5), mode="bilinear", align_corners=False)
        corners = F.interpolate(y, size=(9, 30), mode="bilinear", align_corners=True)
        bicubic = F.interpolate(y, size=(19, 11), mode="bicubic", align_corners=False)
        like = F.interpolate(y, size=nearest.shape[2:], mode="bilinear", align_corners=False)
        up = self.up(y)
        padded = F.pad(x, (2, 1, 3, 2), mode="reflect")
        edge = F.pad(x, (1, 2, 0, 3), mode="replicate")
        constant = F.pad(x, (1, -2, 2, 0), value=0.5)
        line = F.interpolate(y[:, :, 0], scale_factor=3, mode="linear", align_corners=False)
        return (
            self.shuffle(y) + nearest[:, :4], odd, bilinear, corners, bicubic, like,
            self.up_dilated(up), padded, edge, constant, line, F.pixel_unshuffle(x, 2),
        )


class Norms(nn.Module):
    """Normalisations, poolings and unusual convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 24, 3, stride=2, padding=2, dilation=2, bias=False)
        self.group_norm = nn.GroupNorm(4, 24)
        self.instance_norm = nn.InstanceNorm2d(24, affine=True)
        self.plain_instance_norm = nn.InstanceNorm2d(24)
        self.layer_norm = nn.LayerNorm((24, 16, 16))
        self.grouped = nn.Conv2d(24, 36, 3, padding=1, groups=3)
        self.depthwise = nn.Conv2d(24, 48, (5, 3), stride=(1, 2), padding=(2, 1), groups=24)
        self.uneven = nn.Sequential(nn.ZeroPad2d((1, 2, 3, 0)), nn.Conv2d(24, 8, 4, dilation=2))
        self.conv1d = nn.Conv1d(24, 12, 5, stride=2, padding=2)
        self.norm1d = nn.BatchNorm1d(12)
        self.circular = nn.Conv1d(12, 6, 3, padding=1, padding_mode="circular")

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        y = self.conv(x)
        normed = self.group_norm(y) + self.instance_norm(y) * self.plain_instance_norm(y)
        layered = self.layer_norm(F.relu(y))
        line = self.circular(self.norm1d(self.conv1d(y.flatten(2))))
        pooled = (
            F.adaptive_avg_pool2d(y, (4, 8)), F.adaptive_max_pool2d(y, 4), F.adaptive_avg_pool2d(y, 1),
            F.avg_pool2d(y, 3, 2, 1, ceil_mode=True, count_include_pad=False), F.lp_pool2d(y.abs(), 2, 2),
            F.max_pool2d(y, 3, 2, 1, dilation=2), F.max_pool1d(line, 3, 2, ceil_mode=True),
        )
        unit = F.normalize(y, dim=1)
        spread = torch.cat((y.std(dim=(2, 3)), y.norm(dim=(2, 3)), y.var(dim=1).flatten(1)), dim=1)
        convolved = (self.grouped(y), self.depthwise(y), self.uneven(y))
        return (normed, layered, *convolved, line, unit, spread, *pooled)


class ResponseNorm(nn.Module):
    """Local response normalisation: exported as a 3-D pooling and an `If` that shapes decide."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 12, 3)
        self.lrn = nn.LocalResponseNorm(5, alpha=0.1, k=2.0)

    def forward(self, x: Tensor) -> Tensor:
        return self.lrn(F.relu(self.conv(x)))


class Activations(nn.Module):
    """The activation zoo, each between two convolutions so that fusion has something to fuse."""

    def __init__(self) -> None:
        super().__init__()
        kinds: tuple[nn.Module, ...] = (
            nn.ReLU6(), nn.Hardswish(), nn.Mish(), nn.PReLU(8, 0.2), nn.ELU(0.7), nn.CELU(1.3), nn.SELU(),
            nn.SiLU(), nn.GELU(), nn.Softplus(), nn.Softsign(), nn.Hardsigmoid(), nn.LeakyReLU(0.03),
            nn.Hardtanh(-0.5, 0.8), nn.Threshold(0.0, 0.0), nn.LogSigmoid(), nn.Tanhshrink(), nn.Sigmoid(),
            nn.Tanh(), nn.PReLU(1, 0.1), nn.Softshrink(0.3), nn.Hardshrink(0.2),
        )
        self.kinds = nn.ModuleList(kinds)
        self.convs = nn.ModuleList(nn.Conv2d(8, 8, 1 + 2 * (i % 2), padding=i % 2) for i in range(len(kinds)))
        self.stem = nn.Conv2d(3, 8, 3, padding=1)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        y = self.stem(x)
        parts = [kind(conv(y)) for kind, conv in zip(self.kinds, self.convs)]
        tanh_gelu = 0.5 * y * (1 + torch.tanh(0.7978845608 * (y + 0.044715 * y**3)))
        chain = y
        for kind, conv in zip(self.kinds, self.convs):
            chain = kind(conv(chain)) + 0.5 * chain
        logs = torch.log_softmax(y, dim=1) + torch.log(y.abs() + 1).sqrt() - torch.exp(-y.abs())
        waves = torch.sin(y) * torch.cos(y) + torch.erf(y)
        steps = torch.floor(x) - torch.ceil(x * 2) + torch.sign(x) * torch.round(x * 4)
        return torch.cat(parts, 1), tanh_gelu, chain, logs, waves, steps


class Indexing(nn.Module):
    """Selections: top-k, arg-max, cumulative sums, masks, gathers; integer and boolean inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 6)
        self.register_buffer("order", torch.tensor([3, 0, 2, 2]))

    def forward(self, x: Tensor, ids: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
        flat = x.flatten(1)
        values, places = flat.topk(5, dim=1)
        low, _ = flat.topk(3, dim=1, largest=False)
        best = x.argmax(dim=1)
        worst = x.argmin(dim=-1, keepdim=True)
        sums = torch.cumsum(x, dim=2)
        kept = torch.where(mask, flat[:, :8], flat[:, 8:16] * 2)
        filled = flat[:, :8].masked_fill(mask, -1.0).softmax(-1)
        words = self.table(ids).sum(1)
        picked = torch.gather(flat, 1, ids)
        channels = x.index_select(1, self.order)
        reordered = x[:, [2, 1, 0], 1::2, :-1]
        bands = (x[:, 0] > x[:, 1]) & ~(x[:, 2] < 0)
        sizes = (x > 0.5).to(torch.int64).sum(dim=(2, 3))
        extremes = torch.max(x[:, 0], x[:, 1]) + torch.minimum(x[:, 2], x[:, 3]).clamp(min=-0.25)
        triangle = torch.triu(x[:, 0] @ x[:, 1].transpose(-2, -1), diagonal=1)
        return (
            values, places, low, best, worst, sums, kept, filled, words, picked, channels, reordered, bands,
            sizes, extremes, triangle,
        )


BUILDERS: dict[str, Callable[[], nn.Module]] = {
    "nasty_shapes": Shapes,
    "nasty_resample": Resample,
    "nasty_norms": Norms,
    "nasty_lrn": ResponseNorm,
    "nasty_activations": Activations,
    "nasty_indexing": Indexing,
}
