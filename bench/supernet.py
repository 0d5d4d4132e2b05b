#!/usr/bin/python3
"""Measures elastic models: predicted latencies, shared work, search, and accuracy at a latency.

Four parts. `latency`: random variants as the latency table predicts them against the same variants measured
in turns, less how much faster or slower the machine is when what the table was made from is measured again. `search`: on a taught ResNet-56 how much time shared beginnings save
for the first 100 variants of a search, how many evaluations plain evolution and plain annealing need against
ours for the accuracy they reach, and how long a whole `limber search` takes. `accuracy`: of ResNet-56 and
ResNet-20 the best variant at 80, 60, 40 and 30 % of the latency on all CIFAR-10 test images, and every tuned
variant, against the original, and against the original with some of its blocks shrunk, evenly spread: as it is, and trained as a whole for as long
as the elastic model was taught. `budget`: many searches for latencies between 50 and 95 % with other seeds; what each
returns is timed again by another process, in turns with the original. Folders that were taught and parts that were
measured are kept in the work folder, so that the bench goes on where it stopped. Models and data that are not
there are left out. The table goes to stdout, progress to stderr, everything to bench/results/supernet.json.
Exit codes: 0 measured, 1 an engine failed, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

sys.path.insert(0, str(Path(__file__).resolve().parent))

from peers import common, measure  # noqa: E402

PARTS = ("latency", "search", "accuracy", "budget")
SHARED = Path(os.environ.get("LIMBER_SHARED", common.ROOT.parent / "shared"))
DATA = Path(os.environ.get("LIMBER_DATA", Path.home() / ".cache" / "limber-data")) / "cifar10"
PIXELS = ["--mean", "0.485,0.456,0.406", "--std", "0.229,0.224,0.225"]
SHARES = (0.8, 0.6)  # of the latency: searched for on a taught model again and again
LOW_SHARES = (0.4, 0.3)  # searched for once
RANGE = [0.3 + 0.05 * step for step in range(15)]  # where the curve is looked at
TAUGHT = ("resnet56-cifar10", "resnet20-cifar10")  # the first is searched, too
CHANGES = ["--flip", "0.5", "--padding", "4"]
TIMEOUT = 3600.0


@dataclass(frozen=True)
class LatencyCase:
    """A model whose latency table is checked."""

    model: str
    threads: int


LATENCY_CASES = tuple(
    LatencyCase(model, threads)
    for model in ("resnet56-cifar10", "resnet20-cifar10", "mobilenetv2-tiny")
    for threads in (1, 2)
)


def say(text: str, start: float) -> None:
    print(f"{text} ({time.monotonic() - start:.0f} s passed)", file=sys.stderr)


def model_file(model: str) -> Path:
    return SHARED / "models" / f"{model}.onnx"


class Bench:
    """What the parts share: the engine, the work folder, what was measured before."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.limber = common.limber_binary(arguments.limber)
        self.work: Path = arguments.work
        self.work.mkdir(parents=True, exist_ok=True)
        self.start = time.monotonic()
        self.quick: bool = arguments.quick

    def kept(self, name: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Returns what `make` returned the first time."""
        file = self.work / f"{name}{'-quick' if self.quick else ''}.json"
        if file.exists():
            return dict(json.loads(file.read_text()))
        result = make()
        part = file.with_suffix(".part")
        part.write_text(json.dumps(result))
        os.replace(part, file)
        say(f"{name}: done", self.start)
        return result

    def call(self, *arguments: str) -> str:
        result = subprocess.run([str(self.limber), *arguments], capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise common.WorkerError(f"limber {arguments[0]} failed: {common.tail(result.stderr)}")
        return result.stdout

    def elastify(self, model: str, seconds: float, *more: str) -> Path:
        """Returns the folder of an elastic model, taught for so many seconds; 0: its alternatives are as they begin."""
        kind = "-".join(word for word in more if not word.startswith("-"))
        folder = self.work / f"{model}-{seconds:.0f}s{'-' + kind if kind else ''}"
        done = folder / "taught"
        if not done.exists():
            say(f"teaching {folder.name}", self.start)
            command = ["elastify", str(model_file(model)), "--data", data_of(model), *PIXELS, *more]
            if "cifar10" in model:
                command += ["--batch", "64", *CHANGES]
            command += ["--budget", f"{seconds:.0f}s" if seconds else "none", "--threads", str(self.arguments.threads)]
            self.call(*command, "-o", str(folder), "--resume")
            done.touch()
        return folder

    def worker(self, folder: Path, threads: int, images: int, labels: str = "data") -> common.Worker:
        command = [str(self.limber), "bench", str(folder), "--worker", "--threads", str(threads)]
        command += ["--data", data_of(folder.name), "--images", str(images), "--labels", labels]
        return measure.start(common.Worker(f"limber on {folder.name}", command), TIMEOUT)


def data_of(model: str) -> str:
    """Returns the data of a model; those without get generated images, of which only the size matters."""
    return str(DATA) if "cifar10" in model else "synthetic:size=64,count=64"


def ask(worker: common.Worker, line: str) -> dict[str, Any]:
    return dict(common.read_json(worker.ask(line, TIMEOUT), worker.name))


# --- latency ----------------------------------------------------------------------------------------------


def measure_latency(bench: Bench, case: LatencyCase) -> dict[str, Any]:
    """Returns how far the table is off for random variants."""
    folder = bench.elastify(case.model, 0)
    with bench.worker(folder, case.threads, 16, labels="original") as worker:
        table = ask(worker, "table")
        answer = ask(worker, f"subnets {20 if bench.quick else bench.arguments.subnets}")
    subnets, drift = answer["subnets"], answer["drift"]  # machines get faster and slower meanwhile
    errors = [abs(one["predicted_ms"] / one["measured_ms"] * drift - 1) for one in subnets]
    return {
        "model": case.model,
        "threads": case.threads,
        "table": table,
        "drift": drift,
        "error_median": statistics.median(errors),
        "error_worst": max(errors),
        "errors": errors,
        "subnets": subnets,
    }


def measure_latencies(bench: Bench) -> list[dict[str, Any]]:
    cases = [case for case in LATENCY_CASES if model_file(case.model).exists()]
    if bench.quick:
        cases = [case for case in cases if case.model == TAUGHT[0]]
    return [
        bench.kept(f"latency-{case.model}-{case.threads}", lambda case=case: measure_latency(bench, case))
        for case in cases
    ]


# --- search -----------------------------------------------------------------------------------------------


def first_reaching(curve: list[float], accuracy: float) -> int | None:
    """Returns after how many evaluations the accuracy was reached, if it was."""
    return next((index + 1 for index, value in enumerate(curve) if value >= accuracy), None)


def compare_searches(worker: common.Worker, share: float, seed: int, evaluations: int) -> dict[str, Any]:
    """Returns evaluations of plain searches for the best they find, and ours for the same."""
    ours = ask(worker, f"search evolution {share} {evaluations} {seed}")["curve"]
    result: dict[str, Any] = {"share": share, "seed": seed, "best": ours[-1]}
    for method in ("plain-evolution", "plain-annealing"):
        plain = ask(worker, f"search {method} {share} {evaluations} {seed}")["curve"]
        theirs, needed = first_reaching(plain, plain[-1]), first_reaching(ours, plain[-1])
        ratio = needed / theirs if needed and theirs else float("inf")
        result[method] = {"accuracy": plain[-1], "evaluations": theirs, "ours": needed, "ratio": ratio}
    return result


def measure_search(bench: Bench, folder: Path) -> dict[str, Any]:
    threads, quick = bench.arguments.threads, bench.quick
    with bench.worker(folder, threads, 100 if quick else 200) as worker:
        ask(worker, "table")
        reuse = [{"share": share, **ask(worker, f"reuse {share} 100")} for share in SHARES]
        say("shared beginnings measured", bench.start)
        compared = []
        for seed in range(1 if quick else 3):
            for share in SHARES:
                compared.append(compare_searches(worker, share, seed, 100 if quick else 400))
                say(f"searches at {share:.0%}, seed {seed} compared", bench.start)
    return {"reuse": reuse, "compared": compared}


# --- accuracy ---------------------------------------------------------------------------------------------


def search_whole(bench: Bench, folder: Path, share: float) -> dict[str, Any]:
    """Returns what `limber search` finds when nothing is known."""
    for file in folder.glob("variants.db*"):
        file.unlink()
    command = ["search", str(folder), "--data", str(DATA), "--latency", f"{share:.0%}", "--json"]
    return dict(common.read_json(bench.call(*command, "--threads", str(bench.arguments.threads)), "limber search"))


def accuracy_of(bench: Bench, folder: Path, variants: dict[str, str]) -> dict[str, float]:
    """Returns accuracies on all test images."""
    with bench.worker(folder, bench.arguments.threads, 2000 if bench.quick else 10000) as worker:
        return {name: ask(worker, f"accuracy {variant}")["accuracy"] for name, variant in variants.items()}


def measure_curve(bench: Bench, folder: Path) -> dict[str, Any]:
    """Returns latency and accuracy of every tuned variant, and what follows for the whole range."""
    with bench.worker(folder, bench.arguments.threads, 2000 if bench.quick else 10000) as worker:
        variants = ask(worker, "chain")["variants"]
    points = sorted((one["share"], one["accuracy"]) for one in variants)
    original = variants[0]["accuracy"]
    area = sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in zip(points, points[1:]))
    mean = area / (points[-1][0] - points[0][0]) if len(points) > 1 else original
    # What one gets who asks for a share: the best that is no slower.
    levels = [max((a for s, a in points if s <= share + 1e-9), default=None) for share in RANGE]
    neighbours = [three for three in zip(levels, levels[1:], levels[2:]) if None not in three]
    bend = max((100 * abs(b - (a + c) / 2) for a, b, c in neighbours), default=None)
    return {"variants": variants, "range_drop": 100 * (original - mean), "bend": bend}


def uniform_variants(bench: Bench, folder: Path) -> dict[str, str]:
    with bench.worker(folder, bench.arguments.threads, 16) as worker:
        ask(worker, "table")
        variants = {}
        for share in SHARES:
            for kind in ("shrink50", "shrink25"):
                answer = ask(worker, f"uniform {kind} {share}")
                if answer["share"] <= share:
                    variants.setdefault(f"{share:.0%}", answer["variant"])
        return variants


def train_uniform(bench: Bench, folder: Path, share: str, variant: str, seconds: float) -> float:
    """Returns the accuracy of a shrunk model that all of the time went into."""
    run = bench.work / f"{folder.name}-uniform-{share}"
    model = run.with_suffix(".onnx")
    bench.call("export", str(folder), "--variant", variant, "-o", str(model))
    command = ["train", str(model), "--data", str(DATA), *PIXELS, *CHANGES, "--batch", "128", "--lr", "0.05"]
    command += ["--threads", str(bench.arguments.threads)]
    command += ["--val", "none", "--resume"]

    def count_epochs() -> dict[str, Any]:
        start = time.monotonic()
        bench.call(*command, "--epochs", "1", "-o", f"{run}-one")
        return {"epochs": max(1, int(seconds / (time.monotonic() - start)))}

    epochs = bench.kept(f"epochs-{folder.name}-{share}-{seconds:.0f}", count_epochs)["epochs"]
    say(f"training {folder.name} at {share} for {epochs} epochs", bench.start)
    bench.call(*command, "--epochs", str(epochs), "-o", str(run))
    result = bench.call("eval", str(run), "--data", str(DATA), "--json")
    return float(common.read_json(result, "limber eval")["accuracy"])


def measure_accuracy(bench: Bench, model: str, folder: Path, seconds: float) -> dict[str, Any]:
    searches = {f"{share:.0%}": search_whole(bench, folder, share) for share in SHARES + LOW_SHARES}
    say("searched", bench.start)
    variants = {name: search["variant"] for name, search in searches.items()}
    result: dict[str, Any] = {"searches": searches}
    result["best"] = accuracy_of(bench, folder, {"original": "original", **variants})
    result["curve"] = measure_curve(bench, folder)
    say("curve measured", bench.start)
    only = ["--operators", "shrink50", "shrink25"]
    uniform = bench.elastify(model, 0, *only)
    shrunk = uniform_variants(bench, uniform)
    result["uniform_untaught"] = accuracy_of(bench, uniform, shrunk)
    result["uniform_trained"] = {
        share: train_uniform(bench, uniform, share, variant, seconds)
        for share, variant in shrunk.items()
        if share == f"{SHARES[-1]:.0%}"
    }
    return result


# --- budget -----------------------------------------------------------------------------------------------


def time_again(worker: common.Worker, variant: str) -> float:
    """Returns what the variant takes by the original's time: the median of several turns."""
    ratios = []
    for _ in range(5):
        before, taken = (ask(worker, f"accuracy {one}")["measured_ms"] for one in ("original", variant))
        ratios.append(taken / before)
    return statistics.median(ratios)


def measure_budgets(bench: Bench, folder: Path) -> dict[str, Any]:
    """Returns how many searches kept the latency they were asked for."""
    count = 10 if bench.quick else bench.arguments.searches
    runs = []
    with bench.worker(folder, bench.arguments.threads, 8) as worker:
        for seed in range(count):
            share = 0.5 + 0.45 * ((seed * 0.618) % 1)  # spread over the range, in no order
            command = ["search", str(folder), "--data", str(DATA), "--latency", f"{100 * share:.1f}%", "--json"]
            command += ["--seed", str(seed), "--images", "200", "--evaluations", "40"]
            found = common.read_json(bench.call(*command, "--threads", str(bench.arguments.threads)), "limber search")
            again = time_again(worker, found["variant"])
            runs.append({"asked": share, "told": found["measured_s"] / found["original_s"], "again": again})
            say(f"search {seed + 1} of {count}: asked {share:.1%}, again {again:.1%}", bench.start)
    kept = [run for run in runs if run["again"] <= run["asked"]]
    return {"searches": runs, "kept": len(kept) / len(runs)}


# --- all together -----------------------------------------------------------------------------------------


def summarise(results: dict[str, Any]) -> dict[str, float | None]:
    """Returns the figures that are asked for; None where a part was not measured."""
    errors = [error for case in results["latency"] for error in case["errors"]]
    search, accuracy = results["search"], results["accuracy"]
    ratios = [
        entry[method]["ratio"]
        for entry in search.get("compared", [])
        for method in ("plain-evolution", "plain-annealing")
    ]
    best = [one["best"] for one in accuracy.values()]
    searches = [search for one in accuracy.values() for search in one["searches"].values()]
    curves = [one["curve"] for one in accuracy.values()]

    def drop(share: str) -> float | None:
        """The largest of all models."""
        return max((100 * (one["original"] - one[share]) for one in best), default=None)

    return {
        "latency_sum_error_median": statistics.median(errors) if errors else None,
        "latency_sum_error_worst": max(errors, default=None),
        "reuse_saving": min((one["time_saving"] for one in search.get("reuse", [])), default=None),
        "evaluations_ratio": statistics.median(ratios) if ratios else None,
        "accuracy_drop_80": drop("80%"),
        "accuracy_drop_60": drop("60%"),
        "drop_40": drop("40%"),
        "drop_30": drop("30%"),
        "range_accuracy_drop": max((curve["range_drop"] for curve in curves), default=None),
        "bend_worst": max((curve["bend"] for curve in curves if curve["bend"] is not None), default=None),
        "search_seconds": max((one["seconds"] for one in searches), default=None),
        "within_budget": results["budget"].get("kept"),
    }


def print_results(results: dict[str, Any]) -> None:
    for case in results["latency"]:
        errors = f"error median {case['error_median']:.1%}, worst {case['error_worst']:.1%}"
        print(f"{case['model']:<18} {case['threads']} threads: {errors}; table {case['table']['seconds']:.1f} s")
    for one in results["search"].get("reuse", []):
        print(f"shared beginnings at {one['share']:.0%}: {one['time_saving']:.1%} of the time of evaluating saved")
    for entry in results["search"].get("compared", []):
        for method in ("plain-evolution", "plain-annealing"):
            one = entry[method]
            text = f"{one['accuracy']:.2%} after {one['evaluations']} evaluations, ours after {one['ours']}"
            print(f"at {entry['share']:.0%}, seed {entry['seed']}, {method}: {text}")
    for model, one in results["accuracy"].items():
        for variant in one["curve"]["variants"]:
            print(f"{model:<18} curve             {variant['share']:<9.1%} {variant['accuracy']:.2%}")
        for name in ("best", "uniform_untaught", "uniform_trained"):
            for share, accuracy in one[name].items():
                print(f"{model:<18} {name:<17} {share:<9} {accuracy:.2%}")
    for key, value in results["summary"].items():
        print(f"{key:<26} {'-' if value is None else f'{value:.3f}'}")


def parse_arguments() -> argparse.Namespace:
    parser = common.make_parser(__doc__)
    parser.add_argument("--limber", type=Path, default=common.LIMBER, help="default: the release build")
    parser.add_argument("--quick", action="store_true", help="under 15 minutes: ResNet-56 only, taught 3 minutes")
    parser.add_argument("--parts", default="", help=f"some of {','.join(PARTS)}; default: all")
    parser.add_argument("--threads", type=int, default=2, help="of all but `latency`; default: 2")
    parser.add_argument("--subnets", type=int, default=60, help="random variants for each model; default: 60")
    parser.add_argument("--searches", type=int, default=100, help="of `budget`; default: 100")
    parser.add_argument("--budget", type=float, help="seconds of teaching; default: 1800, with --quick 180")
    parser.add_argument("--work", type=Path, default=measure.RESULTS / "supernet", help="what is kept")
    parser.add_argument("--output", type=Path, help="JSON file (default: supernet.json in bench/results)")
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    parts = common.select(PARTS, arguments.parts, lambda part: part)
    bench = Bench(arguments)
    results: dict[str, Any] = {"machine": measure.host(bench.limber, measure.load_before())}
    results["latency"] = measure_latencies(bench) if "latency" in parts else []
    results["search"], results["accuracy"], results["budget"] = {}, {}, {}
    taught = [model for model in TAUGHT[: 1 if bench.quick else None] if model_file(model).exists() and DATA.exists()]
    seconds = arguments.budget or (180 if bench.quick else 1800)
    if "search" in parts and TAUGHT[0] in taught:
        folder = bench.elastify(TAUGHT[0], seconds)
        results["search"] = bench.kept(f"search-{seconds:.0f}", lambda: measure_search(bench, folder))
    if "accuracy" in parts:
        for model in taught:
            folder = bench.elastify(model, seconds)
            results["accuracy"][model] = bench.kept(
                f"accuracy-{model}-{seconds:.0f}",
                lambda model=model, folder=folder: measure_accuracy(bench, model, folder, seconds),
            )
    if "budget" in parts and taught:
        folder = bench.elastify(taught[-1], seconds)
        results["budget"] = bench.kept(f"budget-{seconds:.0f}", lambda: measure_budgets(bench, folder))
    if not taught and parts != ["latency"]:
        print(f"left out: {' and '.join(TAUGHT)} need {SHARED / 'models'} and {DATA}", file=sys.stderr)
    results["summary"] = summarise(results)
    print_results(results)
    measure.write_results(results, arguments.output or measure.RESULTS / "supernet.json")
    return 0


if __name__ == "__main__":
    common.run_main(main)
