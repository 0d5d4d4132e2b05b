#!/usr/bin/python3
"""Exports networks of the zoo for training: build/models/training/NAME.onnx, with the weights of NAME.pt.

Unlike the files for inference, every parameter is one of its own under PyTorch's name: an export in evaluation
mode stores equal tensors once (all LayerNorms of an untrained ViT), and constant folding renames what it
transposes. Batch normalisation is kept, dropout left out. A file is written again when it is older than the
weights or this script.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from peers import common, torch_worker  # noqa: E402
from peers.torch_worker import torch, zoo  # noqa: E402

onnx = common.require_module("onnx", "python3-onnx")

OPSET = 17


def up_to_date(target: Path, *sources: Path) -> bool:
    """Says whether the file exists and is newer than what it is made from."""
    return target.is_file() and all(target.stat().st_mtime > source.stat().st_mtime for source in sources)


def check_names(model: torch.nn.Module, file: Path) -> None:
    """Raises UsageError unless the file holds every parameter of the network under its name."""
    stored = {tensor.name for tensor in onnx.load(str(file)).graph.initializer}
    missing = [name for name, _ in model.named_parameters() if name not in stored]
    if missing:
        raise common.UsageError(f"{file} does not hold {', '.join(missing[:5])} ({len(missing)} in all)")


def export(name: str, source: Path, target: Path) -> None:
    """Writes the network; the file appears only when complete."""
    model = zoo.build(name)
    torch_worker.load_weights(model, source)
    model.train()  # the exporter then stores equal tensors separately
    for module in model.modules():
        if isinstance(module, (torch.nn.modules.batchnorm._BatchNorm, torch.nn.Dropout)):
            module.eval()
    spec = common.model_inputs(source)[0]
    sample = torch.from_numpy(common.random_input(spec, 2, 0))
    part = target.with_suffix(".part")
    torch.onnx.export(
        model,
        sample,
        str(part),
        opset_version=OPSET,
        training=torch.onnx.TrainingMode.PRESERVE,
        do_constant_folding=False,
        input_names=["input"],
        output_names=["output"],
        dynamic_axes={"input": {0: "N"}, "output": {0: "N"}},
    )
    check_names(model, part)
    os.replace(part, target)


def parse_arguments() -> argparse.Namespace:
    parser = common.make_parser(__doc__)
    parser.add_argument("networks", nargs="+", choices=sorted(zoo.BUILDERS), help="names in zoo.py")
    return parser.parse_args()


def main() -> int:
    warnings.filterwarnings("ignore")
    common.TRAINING_MODELS.mkdir(parents=True, exist_ok=True)
    for name in parse_arguments().networks:
        source, target = common.MODELS / f"{name}.onnx", common.TRAINING_MODELS / f"{name}.onnx"
        if not up_to_date(target, source.with_suffix(".pt"), Path(__file__)):
            export(name, source, target)
            print(f"{name}: {target.stat().st_size / 2**20:.1f} MiB", flush=True)
    return 0


if __name__ == "__main__":
    common.run_main(main)
