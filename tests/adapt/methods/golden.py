#!/usr/bin/python3
"""Writes tests/adapt/methods/golden: what PyTorch makes of every method that adapts without labels.

A small network (convolutions, batch normalisation, a linear classifier) computes in double precision from
weights that are exact in float32. network.onnx holds the initial weights; methods.json, for every method, its
options and the weights and running statistics (sum, norm and a few elements of each) after all windows of
images. methods_golden_test.cpp repeats it. Running variances are those of ONNX, of the whole population. Run
it by hand after a change; it needs python3-torch and python3-onnx.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Callable

HERE = Path(__file__).resolve().parent
FOLDER = HERE / "golden"


def load_trainings() -> ModuleType:
    """Returns tests/train/golden.py, which has the same name as this file."""
    spec = importlib.util.spec_from_file_location("trainings", HERE.parents[1] / "train" / "golden.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["trainings"] = module
    spec.loader.exec_module(module)
    return module


trainings = load_trainings()
numpy, torch, common = trainings.numpy, trainings.torch, trainings.common

import torch.nn.functional as F  # noqa: E402
from torch import Tensor, nn  # noqa: E402

IMAGE = (3, 10, 10)
CLASSES = 5
WINDOW = 24  # images
SOURCE = 16  # images whose features are kept
EPSILON = 1e-5


class Norm(nn.Module):
    """Batch normalisation whose running variance is of the population, with a momentum that may change."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))
        self.kept = 0.9

    def forward(self, x: Tensor) -> Tensor:
        mean, var = self.running_mean, self.running_var
        if self.training:
            mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3), unbiased=False)
            self.running_mean.mul_(self.kept).add_(mean.detach(), alpha=1 - self.kept)
            self.running_var.mul_(self.kept).add_(var.detach(), alpha=1 - self.kept)
        shape = (1, -1, 1, 1)
        unit = (x - mean.reshape(shape)) / torch.sqrt(var.reshape(shape) + EPSILON)
        return unit * self.weight.reshape(shape) + self.bias.reshape(shape)


class Network(nn.Module):
    """Two convolutions, the second with a bias, and a linear classifier."""

    def __init__(self, norm: Callable[[int], nn.Module]) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(3, 8, 3, padding=1, bias=False), norm(8)
        self.conv2, self.norm2 = nn.Conv2d(8, 12, 3, 2, 1), norm(12)
        self.head = nn.Linear(12, CLASSES)

    def features(self, x: Tensor) -> Tensor:
        x = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(x))).mean((2, 3))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x))

    def norms(self) -> list[Norm]:
        return [self.norm1, self.norm2]


def images(random: object, count: int, shift: float) -> Tensor:
    """Returns images that are exact in float32, of three kinds: each is bright in another channel.

    `shift` makes a domain of its own.
    """
    channel = IMAGE[1] * IMAGE[2]
    rows = [
        [shift + random.uniform(-1, 1) + (1 if c == i % 3 else 0) for c in range(IMAGE[0]) for _ in range(channel)]
        for i in range(count)
    ]
    return torch.tensor(rows, dtype=torch.float64).float().double().reshape(count, *IMAGE)


def entropy(logits: Tensor) -> Tensor:
    return -(logits.softmax(1) * logits.log_softmax(1)).sum(1).mean()


def information(logits: Tensor) -> Tensor:
    mean = logits.softmax(1).mean(0)
    return entropy(logits) + (mean * torch.log(mean + 1e-8)).sum()


def guess(logits: Tensor, features: Tensor) -> Tensor:
    """Returns SHOT's pseudo-labels."""
    shares = logits.softmax(1)
    rows = torch.cat((features, torch.ones(len(features), 1)), 1)
    rows = rows / rows.norm(dim=1, keepdim=True)
    predicted = torch.unique(shares.argmax(1))
    for _ in range(2):
        centroids = shares.t() @ rows / (1e-8 + shares.sum(0)[:, None])
        cosine = F.cosine_similarity(rows[:, None, :], centroids[predicted][None], dim=2)
        labels = predicted[cosine.argmax(1)]
        shares = F.one_hot(labels, logits.shape[1]).double()
    return labels


def moments(features: Tensor, source: Tensor) -> Tensor:
    def both(rows: Tensor) -> tuple[Tensor, Tensor]:
        return rows.mean(0), torch.sqrt(rows.var(0, unbiased=False) + 1e-5)

    (mean, deviation), (source_mean, source_deviation) = both(features), both(source)
    return ((mean - source_mean) ** 2 + (deviation - source_deviation) ** 2).mean()


def covariance(features: Tensor, source: Tensor) -> Tensor:
    return ((torch.cov(features.t()) - torch.cov(source.t())) ** 2).sum() / (4 * features.shape[1] ** 2)


def kernel(features: Tensor, source: Tensor) -> Tensor:
    count = len(source)
    bandwidth = float((torch.cdist(source, source) ** 2).sum() / (count * (count - 1)))

    def likeness(a: Tensor, b: Tensor) -> Tensor:
        distance = ((a[:, None, :] - b[None, :, :]) ** 2).sum(2)
        return sum(torch.exp(-distance / (bandwidth * 2.0**i)) for i in range(-2, 3)).mean()

    return likeness(features, features) + likeness(source, source) - 2 * likeness(source, features)


ALIGNMENTS = {"moments": moments, "covariance": covariance, "kernel": kernel}

# --- methods: each changes the network by one window --------------------------------------------------


def pass_statistics(model: Network, window: Tensor, kept: float) -> None:
    model.train()
    for norm in model.norms():
        norm.kept = kept
    with torch.no_grad():
        model(window)
    for norm in model.norms():
        norm.kept = 0.9


def body(model: Network) -> list[nn.Parameter]:
    return [p for name, p in model.named_parameters() if not name.startswith("head")]


class BatchNorm:
    def __init__(self, model: Network, prior: float) -> None:
        self.prior = prior
        self.source = {name: t.clone() for name, t in model.named_buffers()}

    def adapt(self, model: Network, window: Tensor) -> None:
        for name, buffer in model.named_buffers():
            buffer.copy_(self.source[name])
        pass_statistics(model, window, self.prior / (self.prior + len(window)))


class Onda:
    def __init__(self, model: Network) -> None:
        pass

    def adapt(self, model: Network, window: Tensor) -> None:
        for begin in range(0, len(window), 10):
            pass_statistics(model, window[begin : begin + 10], 0.9)


class Tent:
    def __init__(self, model: Network, rate: float, steps: int) -> None:
        affine = [p for norm in model.norms() for p in (norm.weight, norm.bias)]
        self.steps, self.optimizer = steps, torch.optim.Adam(affine, rate)

    def adapt(self, model: Network, window: Tensor) -> None:
        model.train()
        for _ in range(self.steps):
            self.optimizer.zero_grad()
            entropy(model(window)).backward()
            self.optimizer.step()
        pass_statistics(model, window, 0)


class Shot:
    def __init__(
        self, model: Network, rate: float, steps: int, share: float = 0, annealed: bool = False,
        nesterov: bool = False, refresh: int = 10,
    ) -> None:
        self.rate, self.steps, self.share = rate, steps, share
        self.annealed, self.nesterov, self.refresh = annealed, nesterov, refresh
        self.labels: list[list[int]] = []

    def adapt(self, model: Network, window: Tensor) -> None:
        optimizer = torch.optim.SGD(body(model), self.rate, 0.9, weight_decay=1e-3, nesterov=self.nesterov)
        for step in range(self.steps):
            if self.share and step % self.refresh == 0:
                model.eval()
                with torch.no_grad():
                    labels = guess(model(window), model.features(window))
                self.labels.append(labels.tolist())
            model.train()
            if self.annealed:
                optimizer.param_groups[0]["lr"] = self.rate * (1 + 10 * step / self.steps) ** -0.75
            optimizer.zero_grad()
            logits = model(window)
            loss = information(logits)
            if self.share:
                loss = loss + self.share * F.cross_entropy(logits, labels)
            loss.backward()
            optimizer.step()


class Alignment:
    def __init__(self, model: Network, source: Tensor, loss: str, rate: float, steps: int) -> None:
        model.eval()
        with torch.no_grad():
            self.source = model.features(source)
        self.loss, self.rate, self.steps = ALIGNMENTS[loss], rate, steps

    def adapt(self, model: Network, window: Tensor) -> None:
        optimizer = torch.optim.SGD(body(model), self.rate, 0.9)
        model.train()
        for _ in range(self.steps):
            optimizer.zero_grad()
            self.loss(model.features(window), self.source).backward()
            optimizer.step()


# By name: the options, and how many windows are adapted to.
CASES: dict[str, tuple[type, dict[str, object], int]] = {
    "bn": (BatchNorm, {"prior": 0}, 2),
    "bn_prior": (BatchNorm, {"prior": 16}, 2),
    "onda": (Onda, {}, 2),
    "tent": (Tent, {"rate": 0.01, "steps": 2}, 3),
    "shot_im": (Shot, {"rate": 0.02, "steps": 12}, 2),
    "shot": (
        Shot,
        {"rate": 0.02, "steps": 12, "share": 0.3, "annealed": True, "nesterov": True, "refresh": 4},
        2,
    ),
    "align_moments": (Alignment, {"loss": "moments", "rate": 0.05, "steps": 8}, 2),
    "align_covariance": (Alignment, {"loss": "covariance", "rate": 20, "steps": 8}, 2),
    "align_kernel": (Alignment, {"loss": "kernel", "rate": 0.02, "steps": 8}, 2),
}


def run(name: str, start: dict[str, Tensor], source: Tensor, windows: list[Tensor]) -> dict[str, object]:
    kind, options, count = CASES[name]
    model = Network(Norm).double()
    model.load_state_dict(start)
    method = kind(model, source, **options) if kind is Alignment else kind(model, **options)
    for window in windows[:count]:
        method.adapt(model, window)
    result: dict[str, object] = {
        "options": options,
        "windows": count,
        "weights": {key: trainings.describe(t) for key, t in model.state_dict().items()},
    }
    if getattr(method, "labels", None):
        result["labels"] = method.labels
    return result


def export(state: dict[str, Tensor], file: Path) -> None:
    model = Network(nn.BatchNorm2d)
    model.load_state_dict({**model.state_dict(), **state})
    case = trainings.Case("network", 0, IMAGE, WINDOW, CLASSES)
    trainings.export(case, model.float().eval(), file)


def balance(model: Network) -> None:
    """Makes the classifier find several classes, and be sure of them."""
    model.eval()
    model.head.weight.mul_(16)
    source = images(trainings.Random(76), WINDOW, 0.3).float()
    model.head.bias.copy_(-(model.head.weight @ model.features(source).mean(0)))


def main() -> int:
    parser = common.make_parser(__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER, help="default: golden beside this file")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    model = Network(Norm)
    with torch.no_grad():
        trainings.randomise(model, trainings.Random(77))
        balance(model)
    start = {name: t.double().clone() for name, t in model.state_dict().items()}
    export(start, folder / "network.onnx")
    torch.set_default_dtype(torch.float64)
    random = trainings.Random(78)
    source = images(random, SOURCE, 0)
    windows = [images(random, WINDOW, 0.3 * (i + 1)) for i in range(3)]
    golden = {"window": WINDOW, "source": SOURCE, "seed": 78, "methods": {}}
    for name in CASES:
        golden["methods"][name] = run(name, start, source, windows)
        moved = golden["methods"][name]["weights"]["conv1.weight"]["norm"]
        print(f"{name:<18} |conv1| {float(start['conv1.weight'].norm()):.5f} -> {moved:.5f}")
    text = json.dumps(golden, indent=None, separators=(",", ":"))
    (folder / "methods.json").write_text(text + "\n")
    print(f"{len(text) / 1024:.1f} KiB")
    return 0


if __name__ == "__main__":
    common.run_main(main)
