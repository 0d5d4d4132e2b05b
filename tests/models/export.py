#!/usr/bin/python3
"""Exports the model zoo to ONNX with seeded random weights and a dynamic batch dimension `N`.

Opsets and exporter options are spread over the models on purpose: with and without constant folding, batch
normalisation folded by the exporter or kept, weights inline or beside the model. A model is exported again
only if it is missing or if these scripts or the PyTorch version changed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
import warnings
import zlib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "bench"))
sys.path.insert(0, str(HERE))

from peers import common  # noqa: E402

torch = common.require_module("torch", "python3-torch")
common.require_module("torchvision", "python3-torchvision")
onnx = common.require_module("onnx", "python3-onnx")

import nasty  # noqa: E402
import zoo  # noqa: E402

STAMPS = "stamps.json"
SANE_SCALE = (1e-3, 1e4)


@dataclass(frozen=True)
class Input:
    """One graph input: its shape without the batch axis, and for integers the range [low, high)."""

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"
    low: int = 0
    high: int = 2


@dataclass(frozen=True)
class Spec:
    """How one model is exported."""

    name: str
    opset: int
    inputs: tuple[Input, ...]
    fold: bool = True  # the exporter's constant folding
    keep_norms: bool = True  # False: the exporter merges batch normalisation into convolutions
    external: bool = False  # weights in NAME.onnx.data
    weights: bool = False  # also NAME.pt, the state dict, for PyTorch as a peer in the benches
    outputs: tuple[str, ...] = ()  # default: output, or output0, output1 ...
    on_request: bool = False  # exported when it is named only: for benches


def image(side: int, other: int = 0, channels: int = 3) -> tuple[Input, ...]:
    """Returns the one input of an image network."""
    return (Input("input", (channels, side, other or side)),)


SPECS: tuple[Spec, ...] = (
    Spec("resnet18", 11, image(224), keep_norms=False, weights=True),
    Spec("resnet50", 13, image(224), weights=True),
    Spec("vgg16", 11, image(224)),
    Spec("mobilenet_v2", 14, image(224), weights=True),
    Spec("mobilenet_v3_small", 14, image(224), keep_norms=False),
    Spec("mobilenet_v3_large", 13, image(224)),
    Spec("shufflenet_v2_x1_0", 11, image(224), fold=False),
    Spec("squeezenet1_1", 9, image(224)),
    Spec("efficientnet_b0", 16, image(224)),
    Spec("densenet121", 17, image(224)),
    Spec("regnet_y_400mf", 16, image(224), fold=False, keep_norms=False),
    Spec("senet18", 13, image(224), fold=False),
    Spec("vit_tiny", 17, image(224), weights=True),
    Spec("deeplabv3_mobilenet_v3_large", 13, image(224)),
    Spec("yolov3_tiny", 11, image(320), fold=False, outputs=("head/coarse:0", "head.fine")),
    Spec("resnet20", 14, image(32), weights=True),
    Spec("resnet56", 10, image(32), weights=True),
    Spec("resnet50_small", 14, image(64)),
    Spec("mobilenet_v2_small", 14, image(64)),
    Spec("vit_small", 14, image(64), fold=False),
    Spec("unet_small", 14, image(64, 96), external=True),
    Spec("convnext_small", 13, image(96)),
    Spec("inception_small", 8, image(75), fold=False),
    Spec("swin_small", 16, image(112)),
    Spec("nasty_shapes", 13, image(8, channels=4), fold=False),
    Spec("nasty_resample", 11, image(12, 14)),
    Spec("nasty_norms", 17, image(32)),
    Spec("nasty_lrn", 13, image(16)),
    Spec("nasty_activations", 16, image(16)),
    Spec(
        "nasty_indexing",
        14,
        (
            Input("input", (4, 6, 6)),
            Input("ids", (7,), "int64", 0, 10),
            Input("mask", (8,), "bool"),
        ),
    ),
    Spec("efficientnet_v2_s", 14, image(224), weights=True, on_request=True),
    Spec("regnet_x_400mf", 14, image(224), weights=True, on_request=True),
    Spec("resnext50_32x4d", 14, image(224), weights=True, on_request=True),
    Spec("mnasnet1_0", 14, image(224), weights=True, on_request=True),
)


def fingerprint() -> str:
    """Hashes what the exported files depend on: these scripts and PyTorch's version."""
    digest = hashlib.sha256(torch.__version__.encode())
    for file in ("export.py", "zoo.py", "nasty.py"):
        digest.update((HERE / file).read_bytes())
    return digest.hexdigest()


def sample_inputs(spec: Spec, batch: int, generator: torch.Generator) -> tuple[torch.Tensor, ...]:
    """Returns random inputs of the declared types for tracing."""

    def one(item: Input) -> torch.Tensor:
        shape = (batch, *item.shape)
        if item.dtype == "float32":
            return torch.randn(shape, generator=generator)
        values = torch.randint(item.low, item.high, shape, generator=generator)
        return values.to(getattr(torch, item.dtype))

    return tuple(one(item) for item in spec.inputs)


def seeded_model(spec: Spec) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    """Returns the model in evaluation mode with its random weights, and inputs to trace it with.

    Raises RuntimeError if its outputs on those inputs are not of a sane size.
    """
    seed = zlib.crc32(spec.name.encode())
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = {**zoo.BUILDERS, **nasty.BUILDERS}[spec.name]()
    inputs = sample_inputs(spec, 2, generator)
    zoo.perturb_batch_norm(model, inputs, generator)
    with torch.no_grad():
        scale = zoo.output_scale(model(*inputs))
    if not SANE_SCALE[0] <= scale <= SANE_SCALE[1]:
        low, high = SANE_SCALE
        raise RuntimeError(f"{spec.name}: largest output is {scale:.3g}, expected {low} to {high}")
    return model, inputs


def output_names(spec: Spec, count: int) -> list[str]:
    """Returns the names of `count` outputs."""
    if spec.outputs:
        return list(spec.outputs)
    return ["output"] if count == 1 else [f"output{i}" for i in range(count)]


def export(spec: Spec, folder: Path) -> Path:
    """Writes NAME.onnx (and what belongs to it) into `folder`; a file appears only when complete."""
    model, inputs = seeded_model(spec)
    with torch.no_grad():
        result = model(*inputs)
    outputs = output_names(spec, 1 if isinstance(result, torch.Tensor) else len(result))
    names = [item.name for item in spec.inputs]
    training = torch.onnx.TrainingMode
    part = folder / f"{spec.name}.part"
    torch.onnx.export(
        model,
        inputs,
        str(part),
        opset_version=spec.opset,
        training=training.PRESERVE if spec.keep_norms else training.EVAL,
        do_constant_folding=spec.fold,
        input_names=names,
        output_names=outputs,
        dynamic_axes={name: {0: "N"} for name in names + outputs},
    )
    target = folder / f"{spec.name}.onnx"
    finish(spec, part, target)
    if spec.weights:
        torch.save(model.state_dict(), target.with_suffix(".pt"))
    return target


def finish(spec: Spec, part: Path, target: Path) -> None:
    """Adds the ranges of integer inputs, moves weights outside if asked, and gives the file its name."""
    integers = [item for item in spec.inputs if item.dtype == "int64"]
    if not integers and not spec.external:
        os.replace(part, target)
        return
    model = onnx.load(str(part))
    for item in integers:
        model.metadata_props.add(key=common.RANGE_KEY + item.name, value=f"{item.low} {item.high}")
    data = f"{target.name}.data"
    if spec.external:
        (target.parent / data).unlink(missing_ok=True)
    onnx.save_model(model, str(part), save_as_external_data=spec.external, location=data, size_threshold=256)
    os.replace(part, target)


def complete(spec: Spec, folder: Path) -> bool:
    """Says whether every file of the model is there."""
    wanted = [f"{spec.name}.onnx"]
    wanted += [f"{spec.name}.onnx.data"] if spec.external else []
    wanted += [f"{spec.name}.pt"] if spec.weights else []
    return all((folder / name).is_file() for name in wanted)


def load_stamps(file: Path) -> dict[str, str]:
    """Reads model name -> fingerprint; an unreadable file counts as empty."""
    try:
        return dict(json.loads(file.read_text()))
    except (OSError, ValueError):
        return {}


def parse_arguments() -> argparse.Namespace:
    parser = common.make_parser(__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=common.MODELS, help="default: build/models")
    parser.add_argument("--models", default="", help="comma-separated names; default: all that tests use")
    parser.add_argument("--force", action="store_true", help="export even what is up to date")
    parser.add_argument("--list", action="store_true", help="print the names of those and exit")
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    if arguments.list:
        print("\n".join(spec.name for spec in SPECS if not spec.on_request))
        return 0
    specs = common.select(SPECS, arguments.models, lambda spec: spec.name)
    if not arguments.models:
        specs = [spec for spec in specs if not spec.on_request]
    arguments.folder.mkdir(parents=True, exist_ok=True)
    stamp_file = arguments.folder / STAMPS
    stamps, current = load_stamps(stamp_file), fingerprint()
    warnings.filterwarnings("ignore")
    for spec in specs:
        head = f"{spec.name:<30} opset {spec.opset:<3}"
        if not arguments.force and stamps.get(spec.name) == current and complete(spec, arguments.folder):
            print(f"{head} up to date", flush=True)
            continue
        start = time.monotonic()
        target = export(spec, arguments.folder)
        stamps[spec.name] = current
        stamp_file.write_text(json.dumps(stamps, indent=1, sort_keys=True) + "\n")
        size = target.stat().st_size / 2**20
        print(f"{head} {size:7.1f} MiB {time.monotonic() - start:6.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    common.run_main(main)
