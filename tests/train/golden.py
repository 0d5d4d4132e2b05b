#!/usr/bin/python3
"""Writes tests/train/golden: five small networks as ONNX and what PyTorch makes of training them.

PyTorch computes in double precision from weights that are exact in float32, so the numbers are the truth and
not another engine's rounding. NAME.onnx holds the initial weights; NAME.json the options, the losses of ten
steps over two batches in turn, the gradients of the first step (sum, norm and a few elements of each), and the
weights and running statistics after the last. golden_test.cpp repeats it. The data come from splitmix64, which
src/base/random.h has too. Run it by hand after a change; it needs python3-torch and python3-onnx.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import sys
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Callable, Iterator

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "bench"))

from peers import common  # noqa: E402

numpy = common.require_module("numpy", "python3-numpy")
torch = common.require_module("torch", "python3-torch")
onnx = common.require_module("onnx", "python3-onnx")
common.require_module("onnx.numpy_helper", "python3-onnx")

import torch.nn.functional as F  # noqa: E402
from torch import Tensor, nn  # noqa: E402

FOLDER = HERE / "golden"
STEPS = 10
BATCHES = 2  # which take turns
SAMPLES = 4  # elements of every gradient that are stored
MASK = 2**64 - 1


class Random:
    """splitmix64, number for number as limber::Random."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def next(self) -> int:
        self._state = (self._state + 0x9E3779B97F4A7C15) & MASK
        z = self._state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def uniform(self, low: float, high: float) -> float:
        return low + (high - low) * ((self.next() >> 11) * 2.0**-53)

    def below(self, count: int) -> int:
        return self.next() % count


# --- networks -----------------------------------------------------------------------------------------


def conv_norm(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    """Returns a padded convolution without bias and its batch normalisation."""
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(outputs)]


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions; the shortcut is a strided 1x1 convolution where shapes differ."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *conv_norm(inputs, outputs, 3, stride), nn.ReLU(), *conv_norm(outputs, outputs, 3)
        )
        same = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if same else nn.Sequential(*conv_norm(inputs, outputs, 1, stride))

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.body(x) + self.shortcut(x))


def resnet8() -> nn.Module:
    """Three residual blocks, 3x12x12, 10 classes."""
    blocks = [ResidualBlock(8, 8, 1), ResidualBlock(8, 12, 2), ResidualBlock(12, 16, 2)]
    pool = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)]
    return nn.Sequential(*conv_norm(3, 8, 3), nn.ReLU(), *blocks, *pool)


class InvertedResidual(nn.Module):
    """MobileNetV2's block: expand, depthwise, project without activation."""

    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int) -> None:
        super().__init__()
        hidden = inputs * expansion
        self.body = nn.Sequential(
            *conv_norm(inputs, hidden, 1), nn.ReLU6(),
            *conv_norm(hidden, hidden, 3, stride, groups=hidden), nn.ReLU6(),
            *conv_norm(hidden, outputs, 1),
        )
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x) if self.residual else self.body(x)


def mobilenet() -> nn.Module:
    """Three inverted residuals, 3x16x16, 7 classes."""
    blocks = [InvertedResidual(8, 8, 1, 3), InvertedResidual(8, 12, 2, 3), InvertedResidual(12, 12, 1, 2)]
    head = [*conv_norm(12, 24, 1), nn.ReLU6(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 7)]
    return nn.Sequential(*conv_norm(3, 8, 3, 2), nn.ReLU6(), *blocks, *head)


class SqueezeExcite(nn.Module):
    """Scales channels by a two-layer network over their means."""

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.fc1 = nn.Conv2d(channels, hidden, 1)
        self.fc2 = nn.Conv2d(hidden, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(self.fc2(F.silu(self.fc1(x.mean((2, 3), keepdim=True)))))


def squeeze_excite() -> nn.Module:
    """Convolutions with squeeze-and-excitation, hard swish, pools with padding; 3x14x14, 5 classes."""
    return nn.Sequential(
        *conv_norm(3, 12, 3), nn.Hardswish(), nn.MaxPool2d(3, 2, 1), SqueezeExcite(12, 4),
        *conv_norm(12, 16, 5), nn.SiLU(), SqueezeExcite(16, 4), nn.AvgPool2d(3, 2, 1),
        nn.Conv2d(16, 16, 3, padding=2, dilation=2), nn.LeakyReLU(0.1),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5),
    )


class Attention(nn.Module):
    """Multi-head self-attention with one projection for query, key and value."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        n, tokens, width = x.shape
        head = width // self.heads
        q, k, v = self.qkv(x).reshape(n, tokens, 3, self.heads, head).permute(2, 0, 3, 1, 4).unbind(0)
        weights = ((q @ k.transpose(-2, -1)) * head**-0.5).softmax(dim=-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(n, tokens, width))


class TransformerBlock(nn.Module):
    """Pre-norm attention and a GELU MLP."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(width), Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    """Two blocks over 4x4 patches of 3x12x12 with a class token and learned positions, 6 classes."""

    def __init__(self) -> None:
        super().__init__()
        width = 24
        self.patches = nn.Conv2d(3, width, 4, 4)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.zeros(1, 10, width))
        self.blocks = nn.Sequential(TransformerBlock(width, 3), TransformerBlock(width, 3))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 6)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(x.shape[0], -1, -1), x), dim=1) + self.positions
        return self.head(self.norm(self.blocks(x))[:, 0])


class UNet(nn.Module):
    """One level down and up again by a transposed convolution, a joined skip, 4 outputs per pixel."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Sequential(*conv_norm(3, 8, 3), nn.ReLU())
        self.bottom = nn.Sequential(*conv_norm(8, 12, 3), nn.ReLU(), *conv_norm(12, 12, 3), nn.ELU())
        self.up = nn.ConvTranspose2d(12, 8, 3, 2, 1, output_padding=1)
        self.merge = nn.Sequential(*conv_norm(16, 8, 3), nn.ReLU())
        self.head = nn.Conv2d(8, 4, 1)

    def forward(self, x: Tensor) -> Tensor:
        skip = self.down(x)
        y = self.up(self.bottom(F.max_pool2d(skip, 2)))
        return self.head(self.merge(torch.cat((y, skip), 1)))


# --- what is trained how ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A golden run. The fields are those of NAME.json's "options"."""

    name: str
    seed: int
    image: tuple[int, int, int]
    batch: int
    classes: int
    loss: str = "cross_entropy"  # labels, one per row or pixel; or "mse": targets like the output
    label_smoothing: float = 0.0
    rate: float = 0.05
    momentum: float = 0.9
    nesterov: bool = False
    decay: float = 0.0
    clip_norm: float = 0.0
    opset: int = 13
    training_mode: bool = False  # exported in training mode instead of evaluation mode


CASES: tuple[tuple[Case, Callable[[], nn.Module]], ...] = (
    (Case("resnet8", 1, (3, 12, 12), 6, 10, decay=5e-4), resnet8),
    (Case("mobilenet", 2, (3, 16, 16), 8, 7, nesterov=True, opset=14), mobilenet),
    (Case("squeeze_excite", 3, (3, 14, 14), 5, 5, label_smoothing=0.1, opset=14), squeeze_excite),
    (Case("vit", 4, (3, 12, 12), 4, 6, clip_norm=1.0, opset=17), VisionTransformer),
    (Case("unet", 5, (3, 8, 12), 3, 4, opset=13), UNet),
    (Case("unet_mse", 6, (3, 8, 8), 4, 4, loss="mse", opset=15, training_mode=True), UNet),
)


def randomise(model: nn.Module, random: Random) -> None:
    """Gives every tensor weights that are exact in float32.

    All differ: the exporter would store equal tensors once, and two layers would share one parameter.
    """
    for name, tensor in model.state_dict().items():
        if name.endswith("num_batches_tracked"):
            continue
        scale = 1.5 / max(1, tensor[0].numel() if tensor.dim() > 1 else 1) ** 0.5
        low, high = -scale, scale
        if tensor.dim() == 1:
            positive = name.endswith(("weight", "running_var"))
            low, high = (0.7, 1.3) if positive else (-0.2, 0.2)
        elif name in ("token", "positions"):
            low, high = -0.5, 0.5
        values = [random.uniform(low, high) for _ in range(tensor.numel())]
        tensor.copy_(torch.tensor(values, dtype=torch.float64).float().reshape(tensor.shape))


def batches(case: Case, shape: tuple[int, ...], count: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yields batches of images in [-1, 1) with labels, or with targets of the output's shape."""
    random = Random(case.seed)

    def floats(dims: tuple[int, ...]) -> Tensor:
        values = [random.uniform(-1, 1) for _ in range(int(numpy.prod(dims)))]
        return torch.tensor(values, dtype=torch.float64).float().double().reshape(dims)

    for _ in range(count):
        images = floats((case.batch, *case.image))
        if case.loss == "mse":
            yield images, floats(shape)
            continue
        dims = (shape[0], *shape[2:])
        labels = [random.below(case.classes) for _ in range(int(numpy.prod(dims)))]
        yield images, torch.tensor(labels).reshape(dims)


def loss_of(case: Case, output: Tensor, targets: Tensor) -> Tensor:
    if case.loss == "mse":
        return F.mse_loss(output, targets)
    return F.cross_entropy(output, targets, label_smoothing=case.label_smoothing)


def describe(tensor: Tensor) -> dict[str, object]:
    """Returns what is stored of a tensor; sample i is element i * (size - 1) / (SAMPLES - 1)."""
    flat = tensor.detach().double().flatten()
    places = [i * (flat.numel() - 1) // (SAMPLES - 1) for i in range(SAMPLES)]
    return {
        "sum": round_to(float(flat.sum())),
        "norm": round_to(float(flat.norm())),
        "samples": [round_to(float(flat[place])) for place in places],
    }


def round_to(value: float) -> float:
    """Keeps nine digits, more than float32 has."""
    return float(f"{value:.9g}")


class RunningVariance:
    """ONNX's running variance of a batch normalisation: PyTorch's takes the unbiased one of each batch."""

    def __init__(self, norm: nn.BatchNorm2d) -> None:
        self.value = norm.running_var.clone()
        norm.register_forward_pre_hook(self._see)

    def _see(self, norm: nn.BatchNorm2d, inputs: tuple[Tensor]) -> None:
        if norm.training:
            variance = inputs[0].detach().var((0, 2, 3), unbiased=False)
            self.value = (1 - norm.momentum) * self.value + norm.momentum * variance


def train(case: Case, model: nn.Module) -> dict[str, object]:
    """Trains ten steps and returns what the JSON file holds."""
    model = model.double().train()
    norms = [(name, m) for name, m in model.named_modules() if isinstance(m, nn.BatchNorm2d)]
    variances = {f"{name}.running_var": RunningVariance(norm) for name, norm in norms}
    optimizer = torch.optim.SGD(
        model.parameters(), case.rate, case.momentum, nesterov=case.nesterov, weight_decay=case.decay
    )
    shape = tuple(model.eval()(torch.zeros(case.batch, *case.image).double()).shape)
    model.train()
    losses: list[float] = []
    gradients: dict[str, object] = {}
    turns = itertools.cycle(list(batches(case, shape, BATCHES)))
    for images, targets in itertools.islice(turns, STEPS):
        optimizer.zero_grad()
        loss = loss_of(case, model(images), targets)
        loss.backward()
        if not gradients:
            gradients = {name: describe(p.grad) for name, p in model.named_parameters()}
        if case.clip_norm:
            nn.utils.clip_grad_norm_(model.parameters(), case.clip_norm)
        optimizer.step()
        losses.append(round_to(float(loss)))
    state = model.state_dict()
    return {
        "options": asdict(case),
        "losses": losses,
        "gradients": gradients,
        "trained": {name: describe(p) for name, p in model.named_parameters()},
        "running_means": {name: describe(t) for name, t in state.items() if name.endswith("running_mean")},
        "running_vars": {name: describe(running.value) for name, running in variances.items()},
    }


def export(case: Case, model: nn.Module, file: Path) -> None:
    """Writes the network with its weights; batch normalisation and parameter names stay as they are."""
    mode = torch.onnx.TrainingMode
    torch.onnx.export(
        copy.deepcopy(model).train(case.training_mode),
        torch.zeros(case.batch, *case.image),
        str(file),
        opset_version=case.opset,
        training=mode.TRAINING if case.training_mode else mode.PRESERVE,
        do_constant_folding=False,
        input_names=["input"],
        output_names=["output"],
        dynamic_axes={"input": {0: "N"}, "output": {0: "N"}},
    )
    restore(model, file)


def restore(model: nn.Module, file: Path) -> None:
    """Puts back the running statistics that tracing in training mode moved; checks everything else."""
    proto = onnx.load(str(file))
    stored = {tensor.name: tensor for tensor in proto.graph.initializer}
    for name, tensor in model.state_dict().items():
        if name.endswith("num_batches_tracked"):
            continue
        if name not in stored:
            raise common.UsageError(f"{file.name} does not hold {name}")
        if "running" in name:
            stored[name].CopyFrom(onnx.numpy_helper.from_array(tensor.numpy(), name))
        if not numpy.array_equal(onnx.numpy_helper.to_array(stored[name]), tensor.numpy()):
            raise common.UsageError(f"{file.name} does not hold {name} as it is")
    onnx.save(proto, str(file))


def parse_arguments() -> argparse.Namespace:
    parser = common.make_parser(__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER, help="default: golden beside this file")
    return parser.parse_args()


def main() -> int:
    folder = parse_arguments().folder
    folder.mkdir(parents=True, exist_ok=True)
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    for case, build in CASES:
        model = build()
        with torch.no_grad():
            randomise(model, Random(1000 + case.seed))
        file = folder / f"{case.name}.onnx"
        export(case, model, file)
        golden = train(case, model)
        file.with_suffix(".json").write_text(json.dumps(golden, indent=None, separators=(",", ":")) + "\n")
        losses = golden["losses"]
        size = (file.stat().st_size + file.with_suffix(".json").stat().st_size) / 1024
        print(f"{case.name:<15} {size:6.1f} KiB  losses {losses[0]:.4f} .. {losses[-1]:.4f}")
    return 0


if __name__ == "__main__":
    common.run_main(main)
