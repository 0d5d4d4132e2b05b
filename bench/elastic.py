#!/usr/bin/python3
"""Measures elastic training: what it promises, what it keeps, and what it costs in accuracy.

Four parts. `steps`: predicted against measured time of steps that train random tensors, and the share of the
time of full training that is achieved when a share is asked for. `pytorch`: a step at rho 0.4 against PyTorch's
full step, interleaved. `flowers`: whole trainings of the models in ../shared/models on Flowers-102 (12 epochs,
64-pixel crops out of 72, flip, SGD 0.03 with momentum 0.9, decay 5e-4, cosine), one for each strategy, with
accuracy, wall clock and peak memory. `time`: transfers within a given time (peers/transfers.py), against full training
for the same time, which is what a user would do otherwise. What was trained once is kept in the work folder, so that the bench goes on
where it stopped. Models and data that are not there are left out. The table goes to stdout, progress to stderr,
everything to bench/results/elastic.json. Exit codes: 0 measured, 1 an engine failed, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Sequence

sys.path.insert(0, str(Path(__file__).resolve().parent))

from peers import common, measure, transfers  # noqa: E402

PARTS = ("steps", "pytorch", "flowers", "time")
SHARED = Path(os.environ.get("LIMBER_SHARED", common.ROOT.parent / "shared"))
ALL_DATA = Path(os.environ.get("LIMBER_DATA", Path.home() / ".cache" / "limber-data"))
DATA = ALL_DATA / "flowers102-96"
SHARES = (0.5, 0.4, 0.3, 0.2)  # of the time of full training
RHOS = (0.35, 0.4, 0.5, 0.6, 0.7)
START_TIMEOUT = 3600.0
TIMEOUT = 1800.0
MIB = 2**20


@dataclass(frozen=True)
class StepModel:
    """A network whose steps are timed: one of tests/models/zoo.py, or a file in ../shared/models."""

    name: str
    batch: int
    shared: bool = False

    def file(self) -> Path:
        folder = SHARED / "models" if self.shared else common.TRAINING_MODELS
        return folder / f"{self.name}.onnx"


STEP_MODELS = (
    StepModel("resnet50", 4),
    StepModel("mobilenet_v2", 4),
    StepModel("vit_tiny", 8),
    StepModel("resnet50h-tiny", 16, shared=True),
    StepModel("mobilenetv2-tiny", 16, shared=True),
    StepModel("vit-tiny", 16, shared=True),
    StepModel("resnet20-cifar10", 64, shared=True),
    StepModel("resnet56-cifar10", 64, shared=True),
    StepModel("resnet20-svhn", 64, shared=True),
)

FLOWER_MODELS = ("resnet50h-tiny", "mobilenetv2-tiny", "vit-tiny")
STRATEGIES = {
    "full": [],
    "elastic-0.5": ["--rho", "0.5"],
    "elastic-0.4": ["--rho", "0.4"],
    "prune-0.5": ["--strategy", "prune", "--rho", "0.5"],
    "bn-bias": ["--strategy", "bn-bias"],
    "last": ["--strategy", "last"],
}


@dataclass(frozen=True)
class Training:
    """One training on Flowers-102."""

    model: str
    strategy: str
    batch: int
    seed: int
    epochs: int

    def name(self) -> str:
        return f"{self.model}-{self.strategy}-b{self.batch}-s{self.seed}-e{self.epochs}"


# --- steps ----------------------------------------------------------------------------------------------


def start_limber(model: StepModel, limber: Path, threads: int, tune: str) -> common.Worker:
    command = [str(limber), "bench", str(model.file()), "--train", "--batch", str(model.batch)]
    command += ["--threads", str(threads), "--tune", tune, "--warm-up", "1", "--worker"]
    return measure.start(common.Worker(f"limber on {model.name}", command), START_TIMEOUT)


def ask(worker: common.Worker, line: str) -> dict[str, Any]:
    return dict(common.read_json(worker.ask(line, TIMEOUT), worker.name))


def measure_steps(model: StepModel, limber: Path, threads: int, masks: int, runs: int) -> dict[str, Any]:
    """Returns predictions and achieved shares of one model."""
    with start_limber(model, limber, threads, "auto") as worker:
        survey = ask(worker, "survey 5")
        shares = [((index + 0.5) / masks) ** 2 for index in range(masks)]  # few tensors more often than many
        random = [ask(worker, f"mask {share:.4f} {runs}") for share in shares]
        asked = [{"rho": rho, **ask(worker, f"share {rho} {runs}")} for rho in RHOS]
    for entry in random:  # in units of the full step that was measured in turns with it: machines drift
        entry["error"] = entry["predicted_ms"] / entry["predicted_full_ms"] / entry["ratio"] - 1
    least = survey["forward_ms"] / survey["full_ms"]
    for entry in asked:
        entry["achieved"] = entry["ratio"]
    errors = [abs(entry["error"]) for entry in random]
    return {
        "model": model.name,
        "batch": model.batch,
        "survey": survey,
        "forward_share": least,
        "masks": random,
        "shares": asked,
        "error_median": statistics.median(errors),
        "error_worst": max(errors),
        "rho_excess": max(entry["achieved"] - entry["rho"] for entry in asked),
        "rho_waste": max(entry["rho"] - entry["achieved"] for entry in asked),
    }


def print_steps(results: Sequence[dict[str, Any]]) -> None:
    print("predicted against measured step time, random tensors; achieved share of the time of full training")
    print(f"{'model':<18} batch tensors  error median  worst   " + "  ".join(f"rho {rho}" for rho in RHOS))
    for entry in results:
        achieved = "  ".join(f"{share['achieved']:>7.3f}" for share in entry["shares"])
        print(
            f"{entry['model']:<18} {entry['batch']:>5} {entry['survey']['tensors']:>7}"
            f"  {entry['error_median']:>11.1%} {entry['error_worst']:>7.1%}  {achieved}"
        )


# --- PyTorch ---------------------------------------------------------------------------------------------


def start_torch(model: StepModel, threads: int, layout: str) -> common.Worker:
    if model.shared:
        command = [common.PYTHON, str(common.PEERS / "torch_onnx_worker.py"), str(model.file())]
    else:
        weights = common.MODELS / f"{model.name}.onnx"
        command = [common.PYTHON, str(common.PEERS / "torch_train_worker.py"), model.name, str(weights)]
    command += ["--batch", str(model.batch), "--threads", str(threads), "--format", layout]
    worker = common.Worker(f"torch ({layout}) on {model.name}", command, measure.torch_environment(threads))
    return measure.start(worker, START_TIMEOUT)


def measure_pytorch(model: StepModel, limber: Path, threads: int, rounds: int) -> dict[str, Any]:
    """Returns how much faster a step at rho 0.4 is than PyTorch's full step, in turns."""
    times: dict[str, list[float]] = {"limber": [], "contiguous": [], "channels_last": []}
    with start_limber(model, limber, threads, "auto") as ours:
        ask(ours, "survey 5")
        share = ask(ours, "share 0.4 3")
        peers = {layout: start_torch(model, threads, layout) for layout in ("contiguous", "channels_last")}
        try:
            for _ in range(rounds):
                for name, worker in (("limber", ours), *peers.items()):
                    time.sleep(measure.SETTLE_SECONDS)
                    times[name] += measure.run_slice(worker, 4, TIMEOUT)[1:]
        finally:
            for worker in peers.values():
                worker.close()
    medians = {name: statistics.median(values) for name, values in times.items()}
    faster = min(("contiguous", "channels_last"), key=lambda name: medians[name])
    return {
        "model": model.name,
        "batch": model.batch,
        "median_ms": medians,
        "faster_pytorch": faster,
        "speedup": medians[faster] / medians["limber"],
        "achieved": share["ratio"],
    }


# --- Flowers-102 -------------------------------------------------------------------------------------------


def training_command(training: Training, limber: Path, threads: int, folder: Path) -> list[str]:
    command = [str(limber), "train", str(SHARED / "models" / f"{training.model}.onnx")]
    command += ["--data", str(DATA / "train"), "--val", str(DATA / "test")]
    command += ["--size", "72", "--crop", "64", "--flip", "0.5", "--epochs", str(training.epochs)]
    command += ["--mean", "0.485,0.456,0.406", "--std", "0.229,0.224,0.225"]
    command += ["--batch", str(training.batch), "--optimizer", "sgd", "--lr", "0.03", "--weight-decay", "5e-4"]
    command += ["--schedule", "cosine", "--seed", str(training.seed), "--threads", str(threads)]
    return [*command, *STRATEGIES[training.strategy], "-o", str(folder), "--resume"]


class OutOfTime(Exception):
    """The deadline has passed; what was trained so far is kept."""


def wait_until(child: subprocess.Popen[bytes], deadline: float) -> resource.struct_rusage | None:
    """Waits for a process; at the deadline asks it to stop. Returns what it used, None when it was stopped."""
    asked = False
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid != 0:
            child.returncode = os.waitstatus_to_exitcode(status)
            return None if asked else usage
        if not asked and time.time() > deadline:
            child.terminate()
            asked = True
        time.sleep(0.05)


def run_training(
    training: Training, limber: Path, threads: int, work: Path, cores: list[int], deadline: float
) -> dict[str, Any]:
    """Trains, or goes on, and returns what came of it; raises WorkerError or OutOfTime."""
    folder, done = work / training.name(), work / f"{training.name()}.json"
    if done.exists():
        return dict(json.loads(done.read_text()))
    if time.time() > deadline:
        raise OutOfTime
    command = training_command(training, limber, threads, folder)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "log").open("ab") as log:
        child = subprocess.Popen(
            command, stdout=log, stderr=log, preexec_fn=lambda: os.sched_setaffinity(0, cores)
        )
        usage = wait_until(child, deadline)
    if usage is None:
        raise OutOfTime
    if child.returncode != 0:
        last = common.tail((folder / "log").read_text(errors="replace"))
        raise common.WorkerError(f"{training.name()} failed: {last}")
    result = {**vars(training), **read_history(folder), "peak_bytes": usage.ru_maxrss << 10}
    done.write_text(json.dumps(result))
    return result


def read_history(folder: Path) -> dict[str, Any]:
    """Returns accuracy, time and choices of a training."""
    lines: list[dict[str, Any]] = []
    for text in (folder / "history.jsonl").read_text().splitlines():
        line = json.loads(text)
        if line["kind"] == "run.resume":  # later steps are done again
            lines = [old for old in lines if old["step"] <= line["step"]]
        lines.append(line)
    epochs = [line for line in lines if line["kind"] == "train.epoch"]
    chosen = [line for line in lines if line["kind"] == "elastic.selection"]
    ends = [line for line in lines if line["kind"] == "elastic.choice_end"]
    seconds = sum(line["seconds"] for line in epochs)
    result = {
        "accuracy": epochs[-1]["val_accuracy"],
        "best_accuracy": max(line["val_accuracy"] for line in epochs),
        "curve": [line["val_accuracy"] for line in epochs],
        "seconds": seconds,  # all that training takes; evaluation is extra for every strategy
        "resumed": any(line["kind"] == "run.resume" for line in lines),
    }
    if chosen:
        result |= {"selections": len(chosen), "left": chosen[-1]["left"], "returned": chosen[-1]["returned"]}
    if ends:
        result["overhead"] = ends[-1]["overhead_s"] / seconds
    return result


def idle_bytes(limber: Path) -> int:
    """Returns the peak memory of a limber that does next to nothing."""
    child = subprocess.Popen([str(limber), "--version"], stdout=subprocess.DEVNULL)
    return os.wait4(child.pid, 0)[2].ru_maxrss << 10


def train_all(trainings: Sequence[Training], arguments: argparse.Namespace, limber: Path) -> list[dict[str, Any]]:
    """Runs the trainings, `jobs` side by side on cores of their own."""
    places = common.Places(arguments.jobs, arguments.threads)
    start, finished = time.monotonic(), 0

    deadline = time.time() + arguments.stop_after if arguments.stop_after else math.inf

    def one(training: Training) -> dict[str, Any] | None:
        nonlocal finished
        try:
            with places.take() as cores:
                result = run_training(training, limber, arguments.threads, arguments.work, cores, deadline)
        except OutOfTime:
            return None
        finished += 1
        passed = time.monotonic() - start
        bar = "#" * round(24 * finished / len(trainings))
        text = f"{training.name()}: {result['accuracy']:.1%} in {result['seconds']:.0f} s"
        print(f"[{bar:<24}] {finished}/{len(trainings)} {text} ({passed:.0f} s passed)", file=sys.stderr)
        return result

    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        results = [result for result in pool.map(one, trainings) if result is not None]
    if len(results) < len(trainings):
        missing = len(trainings) - len(results)
        print(f"out of time: {missing} trainings are not done; the same command goes on", file=sys.stderr)
    return results


def flower_trainings(arguments: argparse.Namespace) -> list[Training]:
    """Returns what is trained, the longest first."""
    wanted = arguments.train_models.split(",") if arguments.train_models else FLOWER_MODELS
    models = [m for m in FLOWER_MODELS if m in wanted and (SHARED / "models" / f"{m}.onnx").exists()]
    if not models or not DATA.exists():
        print(f"left out: Flowers-102 trainings need {SHARED / 'models'} and {DATA}", file=sys.stderr)
        return []
    names = arguments.strategies.split(",") if arguments.strategies else list(STRATEGIES)
    if arguments.quick:
        names = ["full", "elastic-0.5", "elastic-0.4", "last"]
        return [Training("mobilenetv2-tiny", name, 16, 0, 2) for name in names if "mobilenetv2-tiny" in models]
    trainings = []
    for seed in range(arguments.seeds):
        trainings += [Training(m, name, 16, seed, arguments.epochs) for name in names for m in models]
    if arguments.small_batch:
        pair = [name for name in names if name in ("full", "elastic-0.5")]
        trainings += [Training(models[0], name, 4, 0, arguments.epochs) for name in pair]
    return trainings


def summarise_flowers(results: Sequence[dict[str, Any]], idle: int) -> dict[str, Any]:
    """Returns accuracies, time and memory of the strategies relative to full training, over models and seeds."""
    by_case: dict[tuple[str, int, int], dict[str, dict[str, Any]]] = {}
    for result in results:
        case = (result["model"], result["batch"], result["seed"])
        by_case.setdefault(case, {})[result["strategy"]] = result
    table: dict[str, dict[str, list[float]]] = {}
    for strategies in by_case.values():
        full = strategies.get("full")
        if full is None:
            continue
        for name, result in strategies.items():
            row = table.setdefault(name, {"gap": [], "time": [], "memory": []})
            row["gap"].append(100 * (full["accuracy"] - result["accuracy"]))
            row["time"].append(result["seconds"] / full["seconds"])
            row["memory"].append((result["peak_bytes"] - idle) / (full["peak_bytes"] - idle))
    return {
        name: {
            "accuracy_gap_points": statistics.fmean(row["gap"]),
            "accuracy_gap_worst": max(row["gap"]),
            "time_ratio": statistics.fmean(row["time"]),
            "time_ratio_worst": max(row["time"]),
            "memory_ratio": statistics.fmean(row["memory"]),
            "trainings": len(row["gap"]),
        }
        for name, row in table.items()
    }


def print_flowers(results: Sequence[dict[str, Any]], idle: int) -> None:
    print(f"{'Flowers-102':<18} batch seed {'strategy':<12} accuracy  seconds  MiB   overhead  left/returned")
    for r in sorted(results, key=lambda r: (r["model"], r["batch"], r["seed"], -r["seconds"])):
        overhead = f"{r['overhead']:.2%}" if "overhead" in r else ""
        moved = f"{r['left']}/{r['returned']}" if "left" in r else ""
        print(
            f"{r['model']:<18} {r['batch']:>5} {r['seed']:>4} {r['strategy']:<12} {r['accuracy']:>8.2%}"
            f" {r['seconds']:>8.0f} {(r['peak_bytes'] - idle) / MIB:>5.0f} {overhead:>9}  {moved}"
        )


# --- all together --------------------------------------------------------------------------------------------


def summarise(results: dict[str, Any]) -> dict[str, Any]:
    """Returns the figures that are asked for; None where a part was not measured."""
    steps, flowers, pytorch = results["steps"], results["flowers_summary"], results["pytorch"]
    errors = [abs(mask["error"]) for entry in steps for mask in entry["masks"]]

    def of(strategy: str, key: str) -> float | None:
        return flowers.get(strategy, {}).get(key)

    return {
        "prediction_error_median": statistics.median(errors) if errors else None,
        "prediction_error_worst": max(errors) if errors else None,
        "rho_excess_worst": max((entry["rho_excess"] for entry in steps), default=None),
        "rho_waste_worst": max((entry["rho_waste"] for entry in steps), default=None),
        "accuracy_gap_rho50": of("elastic-0.5", "accuracy_gap_points"),
        "accuracy_gap_rho40": of("elastic-0.4", "accuracy_gap_points"),
        "time_ratio_rho50": of("elastic-0.5", "time_ratio"),
        "time_ratio_rho40": of("elastic-0.4", "time_ratio"),
        "memory_ratio_rho50": of("elastic-0.5", "memory_ratio"),
        "speedup_vs_pytorch_rho40": min((entry["speedup"] for entry in pytorch), default=None),
        **transfers.summarise(results["time"]),
    }


def parse_arguments() -> argparse.Namespace:
    parser = common.make_parser(__doc__)
    parser.add_argument("--limber", type=Path, default=common.LIMBER, help="default: the release build")
    parser.add_argument("--quick", action="store_true", help="under ten minutes: fewer masks, two epochs")
    parser.add_argument("--parts", default="", help=f"some of {','.join(PARTS)}; default: all")
    parser.add_argument("--models", default="", help="models of `steps`; default: all")
    parser.add_argument("--strategies", default="", help=f"some of {','.join(STRATEGIES)}; default: all")
    parser.add_argument("--threads", type=int, default=2, help="default: 2")
    parser.add_argument("--masks", type=int, default=40, help="random choices for each model; default: 40")
    parser.add_argument("--epochs", type=int, default=12, help="of the trainings; default: 12")
    parser.add_argument("--seeds", type=int, default=1, help="trainings of each kind; default: 1")
    parser.add_argument("--small-batch", action="store_true", help="also one model with batch 4")
    parser.add_argument("--jobs", type=int, default=1, help="trainings side by side, on cores of their own")
    parser.add_argument("--stop-after", type=float, help="seconds after which trainings stop, to go on later")
    parser.add_argument("--train-models", default="", help=f"some of {','.join(FLOWER_MODELS)}; default: all")
    parser.add_argument("--transfers", default="", help="some of the transfers of `time`; default: all")
    parser.add_argument("--shares", default="", help="of the time of full training; default: 0.5,0.4,0.3,0.2")
    parser.add_argument("--work", type=Path, default=measure.RESULTS / "elastic", help="where trainings are kept")
    parser.add_argument("--output", type=Path, help="JSON file (default: elastic.json in bench/results)")
    return parser.parse_args()


def measure_step_models(arguments: argparse.Namespace, limber: Path) -> list[dict[str, Any]]:
    models = [m for m in STEP_MODELS if not m.shared or m.file().exists()]
    if arguments.quick and not arguments.models:
        models = [m for m in models if m.name in ("mobilenet_v2", "resnet20-cifar10", "vit-tiny")]
    models = common.select(models, arguments.models, lambda model: model.name)
    common.export_training_models([m.name for m in models if not m.shared])
    masks = 10 if arguments.quick else arguments.masks
    results = []
    for index, model in enumerate(models):
        start = time.monotonic()
        results.append(measure_steps(model, limber, arguments.threads, masks, 3))
        worst = results[-1]["error_worst"]
        text = f"error {results[-1]['error_median']:.1%}, worst {worst:.1%}"
        print(f"[{index + 1}/{len(models)}] {model.name}: {text} ({time.monotonic() - start:.0f} s)", file=sys.stderr)
    return results


def measure_against_pytorch(arguments: argparse.Namespace, limber: Path) -> list[dict[str, Any]]:
    models = [StepModel("resnet50", 4), StepModel("resnet50h-tiny", 16, True), StepModel("mobilenetv2-tiny", 16, True)]
    models = [m for m in models if not m.shared or m.file().exists()]
    common.export_training_models(["resnet50"])
    return [measure_pytorch(model, limber, arguments.threads, 3 if arguments.quick else 8) for model in models]


def measure_time(arguments: argparse.Namespace, limber: Path) -> list[dict[str, Any]]:
    wanted = arguments.transfers or (",".join(transfers.QUICK) if arguments.quick else "")
    chosen = common.select(transfers.TRANSFERS, wanted, lambda transfer: transfer.name)
    shares = tuple(map(float, arguments.shares.split(","))) if arguments.shares else SHARES
    shares = (0.5, 0.2) if arguments.quick and not arguments.shares else shares
    bench = transfers.Bench(
        limber=limber,
        models=SHARED / "models",
        data=ALL_DATA,
        work=arguments.work / "time",
        threads=arguments.threads,
        places=common.Places(arguments.jobs, arguments.threads),
        say=lambda text: print(text, file=sys.stderr),
    )
    return transfers.measure(bench, chosen, arguments.seeds, shares)


def main() -> int:
    arguments = parse_arguments()
    limber = common.limber_binary(arguments.limber)
    parts = common.select(PARTS, arguments.parts, lambda part: part)
    results: dict[str, Any] = {"machine": measure.host(limber, measure.load_before())}
    results["steps"] = measure_step_models(arguments, limber) if "steps" in parts else []
    results["pytorch"] = measure_against_pytorch(arguments, limber) if "pytorch" in parts else []
    trainings = flower_trainings(arguments) if "flowers" in parts else []
    results["time"] = measure_time(arguments, limber) if "time" in parts else []
    idle = idle_bytes(limber)
    results["idle_bytes"] = idle
    results["flowers"] = train_all(trainings, arguments, limber) if trainings else []
    results["flowers_summary"] = summarise_flowers(results["flowers"], idle)
    results["summary"] = summarise(results)
    if results["steps"]:
        print_steps(results["steps"])
    for entry in results["pytorch"]:
        what = f"{entry['model']}, batch {entry['batch']}, rho 0.4"
        print(f"{what}: {entry['speedup']:.2f} times as fast as PyTorch's full step ({entry['faster_pytorch']})")
    if results["flowers"]:
        print_flowers(results["flowers"], idle)
    if results["time"]:
        transfers.print_cells(results["time"])
    for key, value in results["summary"].items():
        print(f"{key:<26} {'-' if value is None else f'{value:.3f}'}")
    measure.write_results(results, arguments.output or measure.RESULTS / "elastic.json")
    return 0


if __name__ == "__main__":
    common.run_main(main)
