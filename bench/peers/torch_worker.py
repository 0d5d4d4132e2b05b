#!/usr/bin/python3
"""PyTorch as a worker of bench/infer.py (protocol: bench/README.md): eager or optimised TorchScript.

The network is rebuilt from tests/models/zoo.py and takes its weights from the .pt file beside the ONNX file
or, without one, from the ONNX file's initialisers of the same names.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Callable

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
sys.path.insert(0, str(ROOT / "tests" / "models"))

from peers import common  # noqa: E402

numpy = common.require_module("numpy", "python3-numpy")
torch = common.require_module("torch", "python3-torch")
common.require_module("torchvision", "python3-torchvision")

import zoo  # noqa: E402


Network = Callable[[torch.Tensor], torch.Tensor]


def load_weights(model: torch.nn.Module, file: Path) -> None:
    """Loads every weight of the network; raises UsageError if one is missing."""
    saved = file.with_suffix(".pt")
    if saved.is_file():
        state = torch.load(saved)
    else:
        onnx = common.require_module("onnx", "python3-onnx")
        helper = common.require_module("onnx.numpy_helper", "python3-onnx")
        initializers = onnx.load(str(file)).graph.initializer
        state = {t.name: torch.from_numpy(helper.to_array(t).copy()) for t in initializers}
    for name, value in model.state_dict().items():
        if name.endswith("num_batches_tracked"):
            state.setdefault(name, value)
    state = {name: state[name] for name in model.state_dict() if name in state}
    try:
        model.load_state_dict(state)
    except RuntimeError as error:
        raise common.UsageError(f"{file} does not hold this network: {error}") from error


def prepare(model: torch.nn.Module, mode: str, sample: torch.Tensor) -> Network:
    """Returns what is timed: the module itself, or its frozen and optimised trace."""
    if mode == "eager":
        return model
    traced = torch.jit.freeze(torch.jit.trace(model, sample))
    return torch.jit.optimize_for_inference(traced)


def matmul_gflops(size: int = 1024) -> float:
    """Returns the best of 15 timings of a square float matrix product, which shows the BLAS in use."""
    a = torch.ones(size, size)
    best = float("inf")
    for _ in range(15):
        start = time.perf_counter()
        torch.mm(a, a)
        best = min(best, time.perf_counter() - start)
    return 2 * size**3 / best / 1e9


def blas_library() -> str:
    """Returns the path of the library that gives this process its BLAS."""
    maps = Path("/proc/self/maps").read_text().splitlines()
    paths = (line.split()[-1] for line in maps if "libblas" in line)
    return ", ".join(sorted({os.path.realpath(path) for path in paths})) or "none"


class Server:
    """Answers the protocol's commands for one prepared network."""

    def __init__(self, call: Network, sample: torch.Tensor) -> None:
        self._call = call
        self._input = sample

    def run(self, count: int) -> str:
        """Runs `count` inferences and returns their times in milliseconds."""
        times = []
        for _ in range(count):
            start = time.perf_counter_ns()
            self._call(self._input)
            times.append(f"{(time.perf_counter_ns() - start) / 1e6:.6f}")
        return " ".join(times)

    def check(self, source: str, target: str) -> str:
        """Runs once on an array from disk and writes the first output."""
        self._input = torch.from_numpy(numpy.load(source))
        numpy.save(target, self._call(self._input).numpy())
        return "done"

    def answer(self, line: str) -> str:
        """Returns the answer to one command."""
        command, *words = line.split(" ")
        if command == "run":
            return self.run(int(words[0]))
        if command == "check":
            return self.check(*words)
        if command == "info":
            gflops = round(matmul_gflops(), 1)
            return json.dumps(
                {"version": torch.__version__, "blas": blas_library(), "matmul_gflops": gflops}
            )
        raise ValueError(f"unknown command '{line}'")


def serve(server: Server) -> None:
    """Answers lines of stdin until "quit" or its end."""
    print("ready", flush=True)
    for line in sys.stdin:
        line = line.strip()
        if line == "quit":
            return
        try:
            answer = server.answer(line)
        except (ValueError, TypeError, OSError, RuntimeError) as error:
            answer = "error " + " ".join(str(error).split())
        print(answer, flush=True)


def parse_arguments() -> argparse.Namespace:
    parser = common.make_parser(__doc__)
    parser.add_argument("network", choices=sorted(zoo.BUILDERS), help="name in tests/models/zoo.py")
    parser.add_argument("file", type=Path, help="ONNX file of the same network")
    parser.add_argument("--mode", choices=("eager", "script"), required=True)
    parser.add_argument("--threads", type=int, required=True)
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(arguments.threads)
    model = zoo.build(arguments.network)
    load_weights(model, arguments.file)
    model.eval().requires_grad_(False)
    spec = common.model_inputs(arguments.file)[0]
    sample = torch.from_numpy(common.random_input(spec, 1, 0))
    with torch.no_grad():
        call = prepare(model, arguments.mode, sample)
    with torch.inference_mode():
        serve(Server(call, sample))
    return 0


if __name__ == "__main__":
    common.run_main(main)
