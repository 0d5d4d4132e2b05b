#!/usr/bin/python3
"""Measures what it costs limber to change the trained set during training, and that memory stays flat.

Flatness: builtin:resnet8 switches between 200 random sets before each of 10,000 steps; the resident memory is
read every 100 steps. After the warm-up, in which every set is seen, it must stay within 1 %. Times: how
long set_trained() takes for a set that was seen before and for a new one, there and on ResNet-50, and how much
longer the first step after a switch is than the next. Layers are not tuned. The report goes to stdout, progress
to stderr, everything to bench/results/toggle.json. Exit codes: 0 measured and flat, 1 memory grew or limber
failed, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from peers import common, measure  # noqa: E402

START_TIMEOUT = 600.0
TIMEOUT = 1800.0
FLAT = 0.01  # memory may move by so much, relative, after the warm-up
MIB = 2**20


@dataclass(frozen=True)
class Run:
    """One model and how it is driven: `slices` times `switches` switches, each with 1 + `again` steps."""

    model: str
    batch: int
    sets: int
    slices: int
    switches: int
    again: int
    flat: bool  # memory is judged

    def file(self) -> str:
        if self.model.startswith("builtin:"):
            return self.model
        return str(common.TRAINING_MODELS / f"{self.model}.onnx")


def runs(quick: bool) -> list[Run]:
    """Returns what is measured."""
    if quick:
        return [Run("builtin:resnet8", 4, 20, 10, 20, 0, True), Run("resnet50", 1, 3, 1, 6, 1, False)]
    return [Run("builtin:resnet8", 4, 200, 100, 100, 0, True), Run("resnet50", 4, 8, 1, 24, 1, False)]


def drive(run: Run, limber: Path, threads: int) -> list[dict[str, Any]]:
    """Lets a worker switch and train; returns its answers, one per slice."""
    command = [str(limber), "bench", run.file(), "--train", "--batch", str(run.batch)]
    command += ["--threads", str(threads), "--tune", "off", "--warm-up", "2", "--worker"]
    slices = []
    with measure.start(common.Worker(f"limber on {run.model}", command), START_TIMEOUT) as worker:
        for _ in range(run.slices):
            answer = worker.ask(f"toggle {run.switches} {run.sets} {run.again}", TIMEOUT)
            slices.append(dict(common.read_json(answer, worker.name)))
    return slices


def times(slices: list[dict[str, Any]], key: str) -> list[float]:
    return [value for entry in slices for value in entry[key]]


def describe(values: list[float]) -> dict[str, Any] | None:
    """Returns median and spread of times in milliseconds, None of nothing."""
    if not values:
        return None
    low, high = (float(measure.numpy.percentile(values, percent)) for percent in (10, 90))
    return {"median_ms": statistics.median(values), "p10_ms": low, "p90_ms": high, "n": len(values)}


def flatness(slices: list[dict[str, Any]], sets: int) -> dict[str, Any]:
    """Returns how the resident memory moved after the warm-up.

    The warm-up is a tenth of the run, and longer until every set was seen. What the process holds at one moment
    depends on the set it trains, so medians over tenths of the rest are compared.
    """
    seen = [index for index, entry in enumerate(slices) if entry["sets_seen"] == sets]
    warm = max(seen[0] + 1 if seen else len(slices), len(slices) // 10)
    rest = [entry["resident_bytes"] for entry in slices[warm:]]
    size = max(1, len(rest) // 10)
    blocks = [statistics.median(rest[i : i + size]) for i in range(0, len(rest) - size + 1, size)]
    if len(blocks) < 2:
        raise common.UsageError("too few steps: not every set was seen early enough to judge memory")
    change = max(abs(value / blocks[0] - 1) for value in blocks)
    return {
        "warm_after_slices": warm,
        "median_bytes": blocks,
        "relative_change": change,
        "flat": change <= FLAT,
    }


def measure_run(run: Run, limber: Path, threads: int) -> dict[str, Any]:
    """Returns the results of one model."""
    slices = drive(run, limber, threads)
    result: dict[str, Any] = {
        "model": run.model,
        "batch": run.batch,
        "sets": run.sets,
        "steps": run.slices * run.switches * (1 + run.again),
        "switch_to_known": describe(times(slices, "known_ms")),
        "switch_to_new": describe(times(slices, "new_ms")),
        "first_step": describe(times(slices, "first_step_ms")),
        "next_step": describe(times(slices, "later_step_ms")),
        "resident_bytes": [entry["resident_bytes"] for entry in slices],
    }
    if run.flat:
        result["memory"] = flatness(slices, run.sets)
    return result


def print_result(result: dict[str, Any]) -> None:
    print(f"{result['model']}, batch {result['batch']}, {result['sets']} sets, {result['steps']} steps")
    labels = {"switch_to_known": "switch to a known set", "switch_to_new": "switch to a new set"}
    labels |= {"first_step": "first step after a switch", "next_step": "step after that"}
    for key, label in labels.items():
        entry = result[key]
        if entry is not None:
            spread = f"[{entry['p10_ms']:.3f} {entry['p90_ms']:.3f}]"
            print(f"  {label:<27} {entry['median_ms']:>10.3f} ms {spread}, {entry['n']} times")
    if "memory" in result:
        memory = result["memory"]
        first, last = (memory["median_bytes"][i] / MIB for i in (0, -1))
        verdict = "flat" if memory["flat"] else "NOT flat"
        moved = f"moved by {memory['relative_change']:.2%} at most"
        print(f"  memory after warm-up        {first:.1f} MiB, at the end {last:.1f} MiB, {moved}: {verdict}")


def parse_arguments() -> argparse.Namespace:
    parser = common.make_parser(__doc__)
    parser.add_argument("--limber", type=Path, default=common.LIMBER, help="default: the release build")
    quick = "20 sets, 200 steps, memory not judged; ResNet-50 with batch 1"
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--models", default="", help="builtin:resnet8, resnet50; default: both")
    parser.add_argument("--threads", type=int, default=2, help="default: 2")
    parser.add_argument("--output", type=Path, help="JSON file (default: toggle.json in bench/results)")
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    limber = common.limber_binary(arguments.limber)
    load = measure.load_before()
    chosen = common.select(runs(arguments.quick), arguments.models, lambda run: run.model)
    common.export_training_models([run.model for run in chosen if not run.model.startswith("builtin:")])
    results = []
    for run in chosen:
        start = time.monotonic()
        results.append(measure_run(run, limber, arguments.threads))
        print(f"{run.model}: {time.monotonic() - start:.0f} s", file=sys.stderr)
    machine = {**measure.host(limber, load), "threads": arguments.threads}
    for result in results:
        print_result(result)
    output = arguments.output or measure.RESULTS / "toggle.json"
    measure.write_results({"machine": machine, "runs": results}, output)
    moved = any("memory" in result and not result["memory"]["flat"] for result in results)
    return int(moved and not arguments.quick)  # a short run on few sets has not settled yet


if __name__ == "__main__":
    common.run_main(main)
