#!/usr/bin/python3
"""Measures porting: many goals by one tree against each goal ported alone, everything counted.

Three parts. `tree`: making the tree of 1,000 goals with 4 constraints and adding one more, by
build/PRESET/bench/goal_tree. `supernet`: ResNet-20 on CIFAR-10 is made elastic; then 10 (and 100) goals are ported in one
run, and goals of the 10 each in a run of their own. What making it elastic took counts once for the tree and once for
each goal alone. `filters`: the same by fewer filters, where nothing is prepared. Goals are shares of the model's latency on a
device, each second one with a limit of parameters, too: in two dimensions, near a chain. Accuracies are of the same test images.
Runs that are done are kept in the work folder. The table goes to stdout, progress to stderr, everything to
bench/results/port.json. Exit codes: 0 measured, 1 an engine failed, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from peers import common, measure  # noqa: E402

PARTS = ("tree", "supernet", "filters")
SHARED = Path(os.environ.get("LIMBER_SHARED", common.ROOT.parent / "shared"))
DATA = Path(os.environ.get("LIMBER_DATA", Path.home() / ".cache" / "limber-data")) / "cifar10"
MODEL = SHARED / "models" / "resnet20-cifar10.onnx"
PIXELS = ["--mean", "0.485,0.456,0.406", "--std", "0.229,0.224,0.225"]
CHANGES = ["--flip", "0.5", "--padding", "4"]
GFLOPS, GBS = 20, 6  # of the device in the goals
LOOSEST, STRICTEST = 0.9, 0.4  # shares of the model's latency
ALONE = 3  # goals that a quick run ports alone, evenly spread


class Bench:
    """What the parts share."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.limber = common.limber_binary(arguments.limber)
        self.quick: bool = arguments.quick
        self.threads: int = arguments.threads
        self.work: Path = arguments.work / ("quick" if arguments.quick else "full")
        self.work.mkdir(parents=True, exist_ok=True)
        self.start = time.monotonic()

    def say(self, text: str) -> None:
        print(f"{text} ({time.monotonic() - self.start:.0f} s passed)", file=sys.stderr)

    def call(self, *arguments: str, codes: tuple[int, ...] = (0,)) -> str:
        result = subprocess.run([str(self.limber), *arguments], capture_output=True, text=True, check=False)
        if result.returncode not in codes:
            raise common.WorkerError(f"limber {arguments[0]} failed: {common.tail(result.stderr)}")
        return result.stdout

    def timed(self, name: str, *arguments: str, codes: tuple[int, ...] = (0,)) -> dict[str, Any]:
        """Returns what the command said and its seconds; those of the first time."""
        file = self.work / f"{name}.json"
        if file.exists():
            return dict(json.loads(file.read_text()))
        start = time.monotonic()
        said = common.read_json(self.call(*arguments, "--json", codes=codes), f"limber {arguments[0]}")
        result = {"seconds": time.monotonic() - start, "said": said}
        file.write_text(json.dumps(result))
        self.say(f"{name}: {result['seconds']:.0f} s")
        return result


def tree_part(bench: Bench) -> dict[str, Any]:
    binary = bench.limber.parent / "bench" / "goal_tree"
    done = subprocess.run([str(binary)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise common.WorkerError(f"goal_tree failed: {common.tail(done.stderr)}")
    return dict(common.read_json(done.stdout, "goal_tree"))


def make_goals(model: dict[str, Any], count: int) -> list[dict[str, Any]]:
    latency = model["model_operations"] / (GFLOPS * 1e9) + model["model_moved_bytes"] / (GBS * 1e9)
    goals = []
    for i in range(count):
        share = LOOSEST + (STRICTEST - LOOSEST) * i / max(1, count - 1)
        targets = {"latency": share * latency}
        if i % 2 == 1:
            targets["parameters"] = round(share * model["model_parameters"])
        goals.append({"name": f"at{1000 * share:04.0f}", "device": "device", "targets": targets})
    return goals


def write_goals(bench: Bench, name: str, goals: list[dict[str, Any]]) -> str:
    file = bench.work / f"{name}.goals.json"
    text = json.dumps({"format": 1, "devices": {"device": {"gflops": GFLOPS, "gbs": GBS}}, "goals": goals}, indent=1)
    file.write_text(text + "\n")
    return str(file)


def port(bench: Bench, name: str, goals: list[dict[str, Any]], how: list[str]) -> dict[str, Any]:
    """Ports these goals in one run; refused ones are none of a failure."""
    command = ["port", write_goals(bench, name, goals), "--data", str(DATA), *how, "--resume"]
    command += ["--threads", str(bench.threads), "-o", str(bench.work / name)]
    return bench.timed(name, *command, codes=(0, 1))


def compare(bench: Bench, kind: str, how: list[str], prepared: float, more: int) -> dict[str, Any]:
    """Returns times and accuracies of 10 goals in one run and of goals alone; with `more` also of so many in one run."""
    plan = common.read_json(
        bench.call("port", write_goals(bench, "whole", [{"device": "here", "targets": {"latency": 100}}]), "--plan",
                   "--data", str(DATA), *how, "--json"),
        "limber port",
    )
    goals = make_goals(plan, 10)
    together = port(bench, f"{kind}-10", goals, how)
    chosen = goals if not bench.quick else [goals[round(i * 9 / (ALONE - 1))] for i in range(ALONE)]
    alone = [port(bench, f"{kind}-{goal['name']}", [goal], how) for goal in chosen]
    each = sum(one["seconds"] for one in alone) / len(alone)
    by_name = {goal["name"]: goal for goal in together["said"]["goals"]}
    gaps = {}
    for goal, one in zip(chosen, alone):
        mine, other = by_name[goal["name"]], one["said"]["goals"][0]
        if mine["kept"] and other["kept"]:
            gaps[goal["name"]] = 100 * (other["accuracy"] - mine["accuracy"])
    kept = [goal for goal in together["said"]["goals"] if goal["kept"]]
    result = {
        "prepared_s": prepared,
        "together_s": together["seconds"],
        "alone_s": each,
        "alone_runs": len(alone),
        "ratio_10": (prepared + together["seconds"]) / (10 * (prepared + each)),
        "gaps_points": gaps,
        "gap_worst_points": max(gaps.values(), default=None),
        "kept": len(kept),
        "refused": [goal["refused"] for goal in together["said"]["goals"] if not goal["kept"]],
        "accuracies": {goal["name"]: goal["accuracy"] for goal in kept},
        "model_accuracy": together["said"].get("model_accuracy"),
    }
    if more:
        many = port(bench, f"{kind}-{more}", make_goals(plan, more), how)
        result["many"] = {"goals": more, "seconds": many["seconds"], "kept": many["said"]["kept"]}
        result["ratio_many"] = (prepared + many["seconds"]) / (more * (prepared + each))
    return result


def supernet_part(bench: Bench) -> dict[str, Any]:
    seconds = 60 if bench.quick else 600
    folder = bench.work / "elastic"
    made = bench.timed("elastify", "elastify", str(MODEL), "--data", str(DATA), *PIXELS, *CHANGES, "--batch", "64",
                       "--budget", f"{seconds}s", "--threads", str(bench.threads), "--resume", "-o", str(folder))
    effort = ["--images", "500", "--evaluations", "30"] if bench.quick else ["--images", "10000"]
    return compare(bench, "supernet", ["--model", str(folder), *effort, "--batch", "100"], made["seconds"], 100)


def filters_part(bench: Bench) -> dict[str, Any]:
    how = ["--model", str(MODEL), *PIXELS, *CHANGES, "--batch", "128", "--lr", "0.02"]
    how += ["--images", "1000", "--epochs", "1", "--step-images", "0.02"] if bench.quick else ["--images", "10000"]
    return compare(bench, "filters", how, 0, 0)


def summarise(results: dict[str, Any]) -> dict[str, float | None]:
    supernet, filters, tree = results.get("supernet", {}), results.get("filters", {}), results.get("tree", {})
    return {
        "porting_time_ratio_10_goals": supernet.get("ratio_10"),
        "porting_time_ratio_100_goals": supernet.get("ratio_many"),
        "accuracy_gap_worst_points": supernet.get("gap_worst_points"),
        "filters_time_ratio_10_goals": filters.get("ratio_10"),
        "filters_accuracy_gap_worst_points": filters.get("gap_worst_points"),
        "tree_1000_ms": tree.get("tree_ms"),
        "insert_us": tree.get("insert_us"),
    }


def print_results(results: dict[str, Any]) -> None:
    for kind in ("supernet", "filters"):
        one = results.get(kind)
        if not one:
            continue
        print(f"{kind}: prepared {one['prepared_s']:.0f} s, 10 goals {one['together_s']:.0f} s, one alone {one['alone_s']:.0f} s")
        print(f"  {one['kept']} of 10 kept; " + ", ".join(f"{k} {v:.2%}" for k, v in one["accuracies"].items()))
        print("  alone better by " + ", ".join(f"{k} {v:+.2f}" for k, v in one["gaps_points"].items()) + " points")
    for key, value in results["summary"].items():
        print(f"{key:<34} {'-' if value is None else f'{value:.3f}'}")


def parse_arguments() -> argparse.Namespace:
    parser = common.make_parser(__doc__)
    parser.add_argument("--limber", type=Path, default=common.LIMBER, help="default: the release build")
    parser.add_argument("--quick", action="store_true", help="under 15 minutes: taught 1 minute, 3 goals alone, less training")
    parser.add_argument("--parts", default="", help=f"some of {','.join(PARTS)}; default: all")
    parser.add_argument("--threads", type=int, default=2, help="default: 2")
    parser.add_argument("--work", type=Path, default=measure.RESULTS / "port", help="what is kept")
    parser.add_argument("--output", type=Path, help="JSON file (default: port.json in bench/results)")
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    parts = common.select(PARTS, arguments.parts, lambda part: part)
    bench = Bench(arguments)
    results: dict[str, Any] = {"machine": measure.host(bench.limber, measure.load_before())}
    there = MODEL.exists() and DATA.exists()
    if "tree" in parts:
        results["tree"] = tree_part(bench)
    if "supernet" in parts and there:
        results["supernet"] = supernet_part(bench)
    if "filters" in parts and there:
        results["filters"] = filters_part(bench)
    if not there:
        print(f"left out: porting needs {MODEL} and {DATA}", file=sys.stderr)
    results["summary"] = summarise(results)
    print_results(results)
    measure.write_results(results, arguments.output or measure.RESULTS / "port.json")
    return 0


if __name__ == "__main__":
    common.run_main(main)
