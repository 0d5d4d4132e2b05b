#!/usr/bin/python3
"""Compares limber's inference time with ONNX Runtime and PyTorch, interleaved in one run.

Batch 1, float32, per model and thread count. All engines stay loaded and take turns in short slices, in an
order shuffled anew every round, so that whatever the machine does meanwhile hits all of them. Reported is
the median of all runs, their 10th to 90th percentile, and the ratio of limber's median to the fastest
peer's (below 1: limber is faster). The table goes to stdout, progress to stderr, everything to
bench/results/infer.json. Exit codes: 0 measured, 1 an engine failed or --require not met, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator, Sequence

sys.path.insert(0, str(Path(__file__).resolve().parent))

from peers import common, measure  # noqa: E402
from peers.measure import RESULTS, SETTLE_SECONDS, TIMEOUT, Timings, run_slice  # noqa: E402

numpy = common.require_module("numpy", "python3-numpy")

ENGINES = ("limber", "ort", "torch", "torchscript")
START_TIMEOUT = 600.0  # limber may tune on the first start, TorchScript compiles
CHECK_TOLERANCE = 1e-3
WARM_UP_MS = 300.0

Workers = dict[str, common.Worker]  # by engine
Cell = dict[str, Any]  # one entry of "cells" in the results


@dataclass(frozen=True)
class Model:
    """A benchmarked network: its name in tests/models/zoo.py and a trained file preferred when present."""

    name: str
    trained: str = ""

    def file(self) -> Path:
        """Returns the ONNX file to use."""
        shared = common.SHARED_MODELS / f"{self.trained}.onnx"
        return shared if self.trained and shared.is_file() else common.MODELS / f"{self.name}.onnx"


MODELS = (
    Model("resnet50"),
    Model("resnet18"),
    Model("mobilenet_v2"),
    Model("vit_tiny"),
    Model("resnet20", "resnet20-cifar10"),
    Model("resnet56", "resnet56-cifar10"),
)
# Whose grouped and depthwise convolutions are much of the work; measured when named.
GROUPED = (
    Model("efficientnet_v2_s"),
    Model("regnet_x_400mf"),
    Model("resnext50_32x4d"),
    Model("mnasnet1_0"),
)


@dataclass(frozen=True)
class Protocol:
    """How long a cell is measured."""

    rounds: int
    slice_ms: float


# --- engines ------------------------------------------------------------------------------------------


def start_engine(engine: str, model: Model, threads: int, limber: Path | None) -> common.Worker:
    """Starts an engine's worker on a model and waits until it is ready; raises WorkerError."""
    environment: dict[str, str] | None = None
    if engine == "limber":
        command = [str(limber), "bench", str(model.file()), "--threads", str(threads), "--worker"]
    elif engine == "ort":
        script = common.PEERS / "ort_worker.js"
        command = common.node_command(script, str(model.file()), str(threads))
        environment = common.node_environment()
    else:
        mode = "script" if engine == "torchscript" else "eager"
        command = [common.PYTHON, str(common.PEERS / "torch_worker.py"), model.name, str(model.file())]
        command += ["--mode", mode, "--threads", str(threads)]
        environment = measure.torch_environment(threads)
    worker = common.Worker(f"{engine} on {model.name}", command, environment)
    return measure.start(worker, START_TIMEOUT)


def check_agreement(workers: Workers, model: Model) -> dict[str, float]:
    """Runs all engines on one input; returns their relative differences from a peer, raises if too large."""
    spec = common.model_inputs(model.file())[0]
    with tempfile.TemporaryDirectory(prefix="infer-") as folder:
        source = Path(folder) / "input.npy"
        numpy.save(source, common.random_input(spec, 1, 1))
        outputs = {}
        for engine, worker in workers.items():
            target = Path(folder) / f"{engine}.npy"
            answer = worker.ask(f"check {source} {target}", TIMEOUT)
            if answer != "done":
                raise common.WorkerError(f"{worker.name}: said '{answer}' instead of 'done'")
            outputs[engine] = numpy.load(target)
    reference = list(outputs)[-1]
    differences = {}
    for engine, output in outputs.items():
        difference = common.compare(outputs[reference], output)
        differences[engine] = difference.relative
        if difference.relative > CHECK_TOLERANCE:
            why = difference.why or f"relative error {difference.relative:.1e}"
            raise common.WorkerError(f"{model.name}: {engine} and {reference} disagree: {why}")
    return differences


# --- measuring ----------------------------------------------------------------------------------------


def warm_up(worker: common.Worker) -> float:
    """Runs the engine for a while and returns its time per run in milliseconds."""
    first = min(run_slice(worker, 3))
    return statistics.median(run_slice(worker, max(3, min(1000, round(WARM_UP_MS / first)))))


def take_turns(workers: Workers, protocol: Protocol, order: random.Random) -> dict[str, Timings]:
    """Interleaves the engines. The first run of a slice, on caches the others have filled, is not counted."""
    counts = {}
    for engine, worker in workers.items():
        time.sleep(SETTLE_SECONDS)
        counts[engine] = max(2, min(2000, round(protocol.slice_ms / warm_up(worker))))
    timings = {engine: Timings() for engine in workers}
    for _ in range(protocol.rounds):
        turn = list(workers)
        order.shuffle(turn)
        for engine in turn:
            time.sleep(SETTLE_SECONDS)
            timings[engine].rounds.append(run_slice(workers[engine], counts[engine] + 1)[1:])
    return timings


@contextlib.contextmanager
def running(engines: Sequence[str], model: Model, threads: int, limber: Path | None) -> Iterator[Workers]:
    """Holds one ready worker per engine. They start one after the other, so none is tuned under load."""
    with contextlib.ExitStack() as stack:
        yield {e: stack.enter_context(start_engine(e, model, threads, limber)) for e in engines}


def measure_cell(
    model: Model, threads: int, engines: Sequence[str], limber: Path | None, protocol: Protocol
) -> Cell:
    """Measures one model at one thread count and returns its entry of the results."""
    with running(engines, model, threads, limber) as workers:
        info = {e: measure.engine_info(worker) for e, worker in workers.items() if e != "limber"}
        differences = check_agreement(workers, model)
        timings = take_turns(workers, protocol, random.Random(f"{model.name} {threads}"))
    cell: Cell = {
        "model": model.name,
        "file": model.file().name,
        "threads": threads,
        "rounds": protocol.rounds,
        "engines": {engine: timing.to_json() for engine, timing in timings.items()},
        "relative_difference": differences,
        "info": info,
    }
    peers = {engine: timing.median() for engine, timing in timings.items() if engine != "limber"}
    if peers:
        cell["fastest_peer"] = min(peers, key=lambda engine: peers[engine])
    if peers and "limber" in timings:
        cell.update(ratios(cell["engines"]["limber"], cell["engines"][cell["fastest_peer"]]))
    return cell


def ratios(limber: dict[str, Any], peer: dict[str, Any]) -> dict[str, float]:
    """Returns the ratio of the medians, and the spread of the ratios of single rounds."""
    ratio = limber["median_ms"] / peer["median_ms"]
    return {"ratio_to_fastest_peer": ratio, **measure.round_ratios(limber, peer)}


# --- reporting ----------------------------------------------------------------------------------------


def machine(limber: Path | None, cells: Sequence[Cell], load: float) -> dict[str, Any]:
    """Describes where and with which versions the figures were made."""
    info = {engine: entry for cell in cells for engine, entry in cell["info"].items()}
    return {
        **measure.host(limber, load),
        "onnxruntime": info.get("ort", {}).get("version"),
        "onnxruntime_call": info.get("ort", {}).get("call"),
        **measure.torch_version(info.get("torch") or info.get("torchscript") or {}),
    }


def summarise(cells: Sequence[Cell]) -> dict[str, Any]:
    """Returns the summary list, the geometric mean and the worst of the ratios."""
    keys = ("model", "threads", "ratio_to_fastest_peer")
    summary = [{key: cell[key] for key in keys} for cell in cells if "ratio_to_fastest_peer" in cell]
    values = [entry["ratio_to_fastest_peer"] for entry in summary]
    return {"summary": summary, "geomean": measure.geomean(values), "worst": max(values, default=None)}


def print_table(results: dict[str, Any], engines: Sequence[str]) -> None:
    """Prints medians with their 10th and 90th percentile, the ratios and what they were made with."""
    where = results["machine"]
    print(f"{where['cpu']}, {where['cores']} cores, load before {where['load_before']:.2f}; {where['date']}")
    versions = {"": where["limber"], "onnxruntime": where["onnxruntime"], "torch": where["torch"]}
    print(", ".join(f"{name} {version}".strip() for name, version in versions.items() if version), end="")
    print(f" ({where['torch_blas']}, {where['torch_matmul_gflops']} GFLOP/s)" if where["torch"] else "")
    print("milliseconds per inference, batch 1: median [10th 90th percentile]")
    columns = " ".join(f"{engine:>23}" for engine in engines)
    print(f"{'model':<13} thr {columns}  ratio [per round]  fastest peer")
    for cell in results["cells"]:
        print(table_row(cell, engines))
    if results["geomean"] is not None:
        figures = f"geometric mean {results['geomean']:.3f}, worst {results['worst']:.3f}"
        print(f"limber / fastest peer over {len(results['summary'])} cells: {figures}")


def table_row(cell: Cell, engines: Sequence[str]) -> str:
    """Formats one cell of the table."""
    row = f"{cell['model']:<13} {cell['threads']:>3}"
    for engine in engines:
        entry = cell["engines"][engine]
        row += f" {entry['median_ms']:>8.3f} [{entry['p10_ms']:.2f} {entry['p90_ms']:.2f}]".rjust(24)
    if "ratio_to_fastest_peer" in cell:
        spread = f"[{cell['round_ratio_p10']:.2f} {cell['round_ratio_p90']:.2f}]"
        row += f"  {cell['ratio_to_fastest_peer']:.3f} {spread}"
    return row + f"  {cell.get('fastest_peer', '')}"


def parse_arguments() -> argparse.Namespace:
    parser = common.make_parser(__doc__)
    parser.add_argument("--limber", type=Path, default=common.LIMBER, help="default: the release build")
    parser.add_argument("--quick", action="store_true", help="5 rounds of 100 ms instead of 20 of 200 ms")
    names = ",".join(model.name for model in MODELS + GROUPED)
    parser.add_argument("--models", default="", help=f"some of {names}; default: the first {len(MODELS)}")
    parser.add_argument("--peers", default="", help=f"engines, some of {','.join(ENGINES)}; default: all")
    parser.add_argument("--threads", type=common.number_list, default=[1, 2], help="default: 1,2")
    parser.add_argument("--rounds", type=int, help="rounds per cell")
    parser.add_argument("--output", type=Path, help="JSON file (default: infer.json in bench/results)")
    limits = ("GEOMEAN", "WORST")
    parser.add_argument("--require", nargs=2, type=float, metavar=limits, help="exit 1 if a ratio is above")
    return parser.parse_args()


def measure_all(arguments: argparse.Namespace, engines: Sequence[str], limber: Path | None) -> list[Cell]:
    """Measures every cell, with a line of progress each."""
    choices = MODELS + GROUPED if arguments.models else MODELS
    models = common.select(choices, arguments.models, lambda model: model.name)
    common.export_models([m.name for m in models if m.file().parent == common.MODELS])
    protocol = Protocol(5, 100.0) if arguments.quick else Protocol(20, 200.0)
    if arguments.rounds:
        protocol = Protocol(arguments.rounds, protocol.slice_ms)
    plan = [(model, threads) for model in models for threads in arguments.threads]
    cells = []
    for index, (model, threads) in enumerate(plan):
        start = time.monotonic()
        cells.append(measure_cell(model, threads, engines, limber, protocol))
        medians = ", ".join(f"{e} {t['median_ms']:.3f}" for e, t in cells[-1]["engines"].items())
        head = f"[{index + 1}/{len(plan)}] {model.name}, threads {threads}"
        print(f"{head}: {medians} ms ({time.monotonic() - start:.0f} s)", file=sys.stderr)
    return cells


def main() -> int:
    arguments = parse_arguments()
    engines = common.select(ENGINES, arguments.peers, lambda engine: engine)
    limber = common.limber_binary(arguments.limber) if "limber" in engines else None
    load = measure.load_before()
    cells = measure_all(arguments, engines, limber)
    results = {"machine": machine(limber, cells, load), "cells": cells, **summarise(cells)}
    print_table(results, engines)
    measure.write_results(results, arguments.output or RESULTS / ("infer.json" if limber else "peers.json"))
    if arguments.require and results["geomean"] is not None:
        return int(results["geomean"] > arguments.require[0] or results["worst"] > arguments.require[1])
    return 0


if __name__ == "__main__":
    common.run_main(main)
