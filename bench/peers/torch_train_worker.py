#!/usr/bin/python3
"""PyTorch as a worker of bench/train.py (protocol: bench/README.md): eager training steps.

A step is forward, cross entropy, backward and SGD with momentum 0.9 over all parameters; batch normalisation
uses the batch, dropout is off (the ONNX file has none). Network and weights are those of torch_worker.py.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from peers import common, torch_worker  # noqa: E402
from peers.torch_worker import numpy, torch, zoo  # noqa: E402

MOMENTUM = 0.9
RATE = 1e-6  # of measured steps: small enough to leave the weights as they are
FORMATS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}


def process_memory(key: str) -> int:
    """Returns VmRSS or VmHWM of this process in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) << 10
    raise RuntimeError(f"/proc/self/status has no {key}")


class Trainer:
    """A network, its optimiser and the batch it is trained on."""

    def __init__(self, model: torch.nn.Module, images: torch.Tensor, memory_format: str) -> None:
        self._format = FORMATS[memory_format]
        self._model = model.train().to(memory_format=self._format)
        for module in model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.eval()
        self._optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
        self.set_batch(images, torch.zeros(len(images), dtype=torch.int64))

    def set_batch(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        """Replaces the batch; its memory format becomes the model's."""
        self._images = images.contiguous(memory_format=self._format)
        self._labels = labels

    def set_rate(self, rate: float) -> None:
        for group in self._optimizer.param_groups:
            group["lr"] = rate

    def step(self) -> float:
        """Trains once and returns the loss before the update."""
        self._optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(self._model(self._images), self._labels)
        loss.backward()
        self._optimizer.step()
        return float(loss)

    def trained_elements(self) -> int:
        return sum(p.numel() for p in self._model.parameters())


class Server:
    """Answers the protocol's commands for one trainer."""

    def __init__(self, trainer: Trainer, idle_bytes: int) -> None:
        self._trainer = trainer
        self._idle_bytes = idle_bytes

    def run(self, count: int) -> str:
        """Trains `count` steps and returns their times in milliseconds."""
        times = []
        for _ in range(count):
            start = time.perf_counter_ns()
            self._trainer.step()
            times.append(f"{(time.perf_counter_ns() - start) / 1e6:.6f}")
        return " ".join(times)

    def losses(self, images: str, labels: str, count: str, rate: str) -> str:
        """Returns the losses of `count` steps on a batch from disk."""
        self._trainer.set_batch(torch.from_numpy(numpy.load(images)), torch.from_numpy(numpy.load(labels)))
        self._trainer.set_rate(float(rate))
        losses = [f"{self._trainer.step():.9g}" for _ in range(int(count))]
        self._trainer.set_rate(RATE)
        return " ".join(losses)

    def info(self) -> str:
        return json.dumps(
            {
                "version": torch.__version__,
                "blas": torch_worker.blas_library(),
                "matmul_gflops": round(torch_worker.matmul_gflops(), 1),
                "trained_elements": self._trainer.trained_elements(),
            }
        )

    def answer(self, line: str) -> str:
        """Returns the answer to one command."""
        command, *words = line.split(" ")
        if command == "run":
            return self.run(int(words[0]))
        if command == "losses":
            return self.losses(*words)
        if command == "memory":
            return f"{self._idle_bytes} {process_memory('VmHWM')}"
        if command == "info":
            return self.info()
        raise ValueError(f"unknown command '{line}'")


def parse_arguments() -> argparse.Namespace:
    parser = common.make_parser(__doc__)
    parser.add_argument("network", choices=sorted(zoo.BUILDERS), help="name in tests/models/zoo.py")
    parser.add_argument("file", type=Path, help="ONNX file of the same network")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--format", choices=sorted(FORMATS), required=True)
    parser.add_argument("--threads", type=int, required=True)
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(arguments.threads)
    spec = common.model_inputs(arguments.file)[0]
    idle_bytes = process_memory("VmRSS")
    model = zoo.build(arguments.network)
    torch_worker.load_weights(model, arguments.file)
    images = torch.from_numpy(common.random_input(spec, arguments.batch, 0))
    torch_worker.serve(Server(Trainer(model, images, arguments.format), idle_bytes))
    return 0


if __name__ == "__main__":
    common.run_main(main)
