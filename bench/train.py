#!/usr/bin/python3
"""Compares limber's training steps with PyTorch's, interleaved in one run, and the memory they need.

A step is forward, cross entropy, backward and an SGD update with momentum 0.9 of every parameter; batch
normalisation uses the batch. PyTorch runs eagerly in both memory formats and the better one counts. All engines
stay loaded and take turns in an order shuffled anew every round. Memory is the peak of a fresh process above
what it held before the model was loaded. The table goes to stdout, progress to stderr, everything to
bench/results/train.json. Exit codes: 0 measured, 1 an engine failed or --require not met, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Sequence

sys.path.insert(0, str(Path(__file__).resolve().parent))

from peers import common, measure  # noqa: E402
from peers.measure import Timings  # noqa: E402

numpy = common.require_module("numpy", "python3-numpy")

PYTORCH = ("torch", "torch_channels_last")
LAST = "limber_last"  # only the last layer trained
LAST_TENSORS = 2  # its weight and bias
START_TIMEOUT = 3600.0  # limber times many candidates on the first start
TIMEOUT = 600.0
CHECK_STEPS = 3
CHECK_RATE = 1e-4
FIRST_TOLERANCE = 1e-5  # relative, of the first loss
LATER_TOLERANCE = 1e-3  # of the others
CHAOS = 3.0  # times PyTorch's two memory formats may disagree that limber may, in addition
MEMORY_STEPS = 4
MIB = 2**20

Workers = dict[str, common.Worker]  # by engine
Cell = dict[str, Any]  # one entry of "cells" in the results


@dataclass(frozen=True)
class Model:
    """A benchmarked network of tests/models/zoo.py and its batch size."""

    name: str
    batch: int
    last: bool = False  # also with only the last layer trained

    def file(self) -> Path:
        return common.TRAINING_MODELS / f"{self.name}.onnx"

    def weights(self) -> Path:
        """The file beside which PyTorch finds its weights."""
        return common.MODELS / f"{self.name}.onnx"

    def engines(self) -> tuple[str, ...]:
        return ("limber", *PYTORCH, *((LAST,) if self.last else ()))


MODELS = (
    Model("resnet50", 4, last=True),
    Model("mobilenet_v2", 4),
    Model("resnet20", 128),
    Model("resnet56", 128),
    Model("vit_tiny", 8),
)


@dataclass(frozen=True)
class Protocol:
    """How long a cell is measured."""

    rounds: int
    slice_ms: float  # of one engine's turn, but at least two steps


# --- engines ------------------------------------------------------------------------------------------


def start_engine(engine: str, model: Model, threads: int, limber: Path) -> common.Worker:
    """Starts an engine's worker on a model and waits until it is ready; raises WorkerError."""
    environment: dict[str, str] | None = None
    sizes = ["--batch", str(model.batch), "--threads", str(threads)]
    if engine in PYTORCH:
        script = str(common.PEERS / "torch_train_worker.py")
        layout = "channels_last" if engine == "torch_channels_last" else "contiguous"
        command = [common.PYTHON, script, model.name, str(model.weights()), *sizes, "--format", layout]
        environment = measure.torch_environment(threads)
    else:
        command = [str(limber), "bench", str(model.file()), *sizes, "--worker", "--warm-up", "0"]
        command += ["--train-last", str(LAST_TENSORS)] if engine == LAST else ["--train"]
    worker = common.Worker(f"{engine} on {model.name}", command, environment)
    return measure.start(worker, START_TIMEOUT)


def check_sizes(info: dict[str, dict[str, Any]], model: Model) -> None:
    """Raises WorkerError unless limber and PyTorch train the same number of weights."""
    ours, theirs = info["limber"]["trained_elements"], info[PYTORCH[0]]["trained_elements"]
    if ours != theirs:
        raise common.WorkerError(f"{model.name}: limber trains {ours} numbers, PyTorch {theirs}")


def ask_losses(worker: common.Worker, images: Path, labels: Path) -> list[float]:
    """Trains a few steps on one batch and returns the losses."""
    answer = worker.ask(f"losses {images} {labels} {CHECK_STEPS} {CHECK_RATE}", TIMEOUT)
    try:
        return [float(word) for word in answer.split()]
    except ValueError as error:
        raise common.WorkerError(f"{worker.name}: answered '{answer}' instead of losses") from error


def check_agreement(workers: Workers, model: Model) -> dict[str, list[float]]:
    """Trains all engines a few steps on one batch; returns the losses, raises if they differ.

    The first loss compares the forward passes, the later ones gradients and updates. Few images and random
    weights let rounding grow, in deep networks to a percent within three steps; how much it does is seen from
    PyTorch's own two memory formats.
    """
    spec = common.model_inputs(model.file())[0]
    generator = numpy.random.default_rng(7)
    with tempfile.TemporaryDirectory(prefix="train-") as folder:
        images, labels = Path(folder) / "images.npy", Path(folder) / "labels.npy"
        numpy.save(images, common.random_input(spec, model.batch, 1))
        numpy.save(labels, generator.integers(0, 10, model.batch).astype(numpy.int64))
        engines = [engine for engine in workers if engine != LAST]
        losses = {engine: ask_losses(workers[engine], images, labels) for engine in engines}
    compare_losses(losses, model)
    return losses


def compare_losses(losses: dict[str, list[float]], model: Model) -> None:
    """Raises WorkerError if limber's losses are not PyTorch's."""
    steps = zip(losses["limber"], *(losses[engine] for engine in PYTORCH))
    for step, (ours, theirs, other) in enumerate(steps):
        allowed = (LATER_TOLERANCE if step else FIRST_TOLERANCE) * abs(theirs) + CHAOS * abs(theirs - other)
        if not abs(ours - theirs) <= allowed:
            what = f"loss {ours:.6g} in step {step}, expected {theirs:.6g} within {allowed:.1e}"
            raise common.WorkerError(f"{model.name}: limber and PyTorch disagree: {what}")


# --- measuring ----------------------------------------------------------------------------------------


def take_turns(workers: Workers, protocol: Protocol, order: random.Random) -> dict[str, Timings]:
    """Interleaves the engines. The first step of a turn, on caches the others have filled, is not counted."""
    counts = {}
    for engine, worker in workers.items():
        time.sleep(measure.SETTLE_SECONDS)
        step = min(measure.run_slice(worker, 2, TIMEOUT))
        counts[engine] = max(2, min(500, round(protocol.slice_ms / step)))
    timings = {engine: Timings() for engine in workers}
    for _ in range(protocol.rounds):
        turn = list(workers)
        order.shuffle(turn)
        for engine in turn:
            time.sleep(measure.SETTLE_SECONDS)
            times = measure.run_slice(workers[engine], counts[engine] + 1, TIMEOUT)
            timings[engine].rounds.append(times[1:])
    return timings


def measure_memory(engine: str, model: Model, threads: int, limber: Path) -> dict[str, int]:
    """Trains a few steps in a process of its own and returns how much its memory grew at most."""
    with start_engine(engine, model, threads, limber) as worker:
        measure.run_slice(worker, MEMORY_STEPS, TIMEOUT)
        answer = worker.ask("memory", TIMEOUT)
    try:
        idle, peak = (int(word) for word in answer.split())
    except ValueError as error:
        raise common.WorkerError(f"{worker.name}: answered '{answer}' instead of two sizes") from error
    return {"idle_bytes": idle, "peak_bytes": peak, "grown_bytes": peak - idle}


def measure_cell(model: Model, threads: int, limber: Path, protocol: Protocol) -> Cell:
    """Measures one model and returns its entry of the results."""
    engines = model.engines()
    with contextlib.ExitStack() as stack:  # they start one after the other, so none is tuned under load
        workers = {
            engine: stack.enter_context(start_engine(engine, model, threads, limber)) for engine in engines
        }
        info = {engine: measure.engine_info(worker) for engine, worker in workers.items()}
        check_sizes(info, model)
        losses = check_agreement(workers, model)
        timings = take_turns(workers, protocol, random.Random(model.name))
    memory = {engine: measure_memory(engine, model, threads, limber) for engine in engines}
    cell: Cell = {
        "model": model.name,
        "batch": model.batch,
        "threads": threads,
        "rounds": protocol.rounds,
        "engines": {engine: timing.to_json() for engine, timing in timings.items()},
        "memory": memory,
        "losses": losses,
        "info": info,
    }
    cell.update(comparison(cell))
    return cell


def comparison(cell: Cell) -> dict[str, Any]:
    """Returns limber's ratios to PyTorch's faster and to its smaller memory format, and the last layer's."""
    engines, memory = cell["engines"], cell["memory"]
    faster = min(PYTORCH, key=lambda engine: engines[engine]["median_ms"])
    smaller = min(PYTORCH, key=lambda engine: memory[engine]["grown_bytes"])
    result: dict[str, Any] = {
        "faster_pytorch": faster,
        "smaller_pytorch": smaller,
        "time_ratio_to_pytorch": engines["limber"]["median_ms"] / engines[faster]["median_ms"],
        **measure.round_ratios(engines["limber"], engines[faster]),
        "memory_ratio_to_pytorch": memory["limber"]["grown_bytes"] / memory[smaller]["grown_bytes"],
    }
    if LAST in engines:
        planned = {engine: cell["info"][engine]["arena_bytes"] for engine in ("limber", LAST)}
        result["last_layer"] = {
            "time_ratio_to_full": engines[LAST]["median_ms"] / engines["limber"]["median_ms"],
            "memory_ratio_to_full": memory[LAST]["grown_bytes"] / memory["limber"]["grown_bytes"],
            "planned_ratio_to_full": planned[LAST] / planned["limber"],
        }
    return result


# --- reporting ----------------------------------------------------------------------------------------


def summarise(cells: Sequence[Cell]) -> dict[str, Any]:
    """Returns the summary list, the geometric means and the worst of the ratios."""
    kinds = ("time_ratio_to_pytorch", "memory_ratio_to_pytorch")
    result: dict[str, Any] = {"summary": [{key: cell[key] for key in ("model", *kinds)} for cell in cells]}
    for kind in kinds:
        values = [cell[kind] for cell in cells]
        result[kind] = {"geomean": measure.geomean(values), "worst": max(values)}
    return result


def print_table(results: dict[str, Any]) -> None:
    """Prints times, memory, ratios and what they were made with."""
    where = results["machine"]
    print(f"{where['cpu']}, {where['cores']} cores, load before {where['load_before']:.2f}; {where['date']}")
    blas = f"{where['torch_blas']}, {where['torch_matmul_gflops']} GFLOP/s"
    print(f"{where['limber']}, torch {where['torch']} ({blas})")
    print(f"milliseconds per step, {where['threads']} threads: median [10th 90th percentile]")
    engines = ("limber", *PYTORCH)
    columns = " ".join(f"{engine:>25}" for engine in engines)
    print(f"{'model':<13} batch {columns}  ratio [per round]")
    for cell in results["cells"]:
        print(time_row(cell, engines))
    print("MiB above the idle process, at most; arena: what limber planned for activations and gradients")
    print(f"{'model':<13} batch {columns}  ratio  arena")
    for cell in results["cells"]:
        print(memory_row(cell, engines))
    for cell in results["cells"]:
        if "last_layer" in cell:
            print_last_layer(cell)
    for what in ("time", "memory"):
        figures = results[f"{what}_ratio_to_pytorch"]
        mean, worst = figures["geomean"], figures["worst"]
        print(f"{what}, limber / PyTorch: geometric mean {mean:.3f}, worst {worst:.3f}")


def time_row(cell: Cell, engines: Sequence[str]) -> str:
    row = f"{cell['model']:<13} {cell['batch']:>5}"
    for engine in engines:
        entry = cell["engines"][engine]
        row += f" {entry['median_ms']:>8.2f} [{entry['p10_ms']:.1f} {entry['p90_ms']:.1f}]".rjust(26)
    spread = f"[{cell['round_ratio_p10']:.2f} {cell['round_ratio_p90']:.2f}]"
    return row + f"  {cell['time_ratio_to_pytorch']:.3f} {spread}"


def memory_row(cell: Cell, engines: Sequence[str]) -> str:
    row = f"{cell['model']:<13} {cell['batch']:>5}"
    for engine in engines:
        row += f" {cell['memory'][engine]['grown_bytes'] / MIB:>25.1f}"
    arena = cell["info"]["limber"]["arena_bytes"] / MIB
    return row + f"  {cell['memory_ratio_to_pytorch']:.3f}  {arena:.1f}"


def print_last_layer(cell: Cell) -> None:
    """Prints what training only the last layer costs, against training everything."""
    last, times, memory = cell["last_layer"], cell["engines"], cell["memory"]
    arena = cell["info"][LAST]["arena_bytes"] / MIB
    print(
        f"{cell['model']}, last layer only: {times[LAST]['median_ms']:.2f} ms"
        f" ({last['time_ratio_to_full']:.3f} of the full step),"
        f" {memory[LAST]['grown_bytes'] / MIB:.1f} MiB ({last['memory_ratio_to_full']:.3f}),"
        f" arena {arena:.1f} MiB ({last['planned_ratio_to_full']:.3f})"
    )


def parse_arguments() -> argparse.Namespace:
    parser = common.make_parser(__doc__)
    parser.add_argument("--limber", type=Path, default=common.LIMBER, help="default: the release build")
    parser.add_argument("--quick", action="store_true", help="3 rounds of 0.5 s instead of 12 of 2 s")
    names = ",".join(model.name for model in MODELS)
    parser.add_argument("--models", default="", help=f"some of {names}; default: all")
    parser.add_argument("--threads", type=int, default=2, help="default: 2")
    parser.add_argument("--batch", type=int, help="batch of every model, to try things out")
    parser.add_argument("--rounds", type=int, help="rounds per cell")
    parser.add_argument("--output", type=Path, help="JSON file (default: train.json in bench/results)")
    limits = ("TIME", "MEMORY")
    help_text = "exit 1 if the geometric mean of a ratio is above"
    parser.add_argument("--require", nargs=2, type=float, metavar=limits, help=help_text)
    return parser.parse_args()


def measure_all(arguments: argparse.Namespace, limber: Path) -> list[Cell]:
    """Measures every cell, with a line of progress each."""
    models = common.select(MODELS, arguments.models, lambda model: model.name)
    if arguments.batch:
        models = [Model(model.name, arguments.batch, model.last) for model in models]
    common.export_training_models([model.name for model in models])
    protocol = Protocol(3, 500.0) if arguments.quick else Protocol(12, 2000.0)
    if arguments.rounds:
        protocol = Protocol(arguments.rounds, protocol.slice_ms)
    cells = []
    for index, model in enumerate(models):
        start = time.monotonic()
        cells.append(measure_cell(model, arguments.threads, limber, protocol))
        medians = ", ".join(f"{e} {t['median_ms']:.2f}" for e, t in cells[-1]["engines"].items())
        head = f"[{index + 1}/{len(models)}] {model.name}, batch {model.batch}"
        print(f"{head}: {medians} ms ({time.monotonic() - start:.0f} s)", file=sys.stderr)
    return cells


def main() -> int:
    arguments = parse_arguments()
    limber = common.limber_binary(arguments.limber)
    load = measure.load_before()
    cells = measure_all(arguments, limber)
    machine = {
        **measure.host(limber, load),
        **measure.torch_version(cells[0]["info"][PYTORCH[0]]),
        "threads": arguments.threads,
    }
    results = {"machine": machine, "cells": cells, **summarise(cells)}
    print_table(results)
    measure.write_results(results, arguments.output or measure.RESULTS / "train.json")
    if arguments.require:
        limits = zip(("time_ratio_to_pytorch", "memory_ratio_to_pytorch"), arguments.require)
        return int(any(results[kind]["geomean"] > limit for kind, limit in limits))
    return 0


if __name__ == "__main__":
    common.run_main(main)
