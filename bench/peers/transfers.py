"""Transfers of pretrained networks to other data, and what a training makes of a given time.

For each transfer, seed and share of the time that full training takes: full training within that time, the fixed share of
each step (`--rho`) for as many epochs as full training, and what Limber chooses by itself (`--time`).
"""

from __future__ import annotations

import concurrent.futures
import gzip
import itertools
import json
import os
import random
import shutil
import statistics
import struct
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Sequence

from peers import common

TIMEOUT = 3600.0


@dataclass(frozen=True)
class Transfer:
    """A network of ../shared/models, and images it was not made for."""

    name: str
    model: str
    data: str  # idx:NAME or images:FOLDER, within the data folder
    count: int  # images to train on; 0: all
    epochs: int = 8  # of full training
    options: tuple[str, ...] = ()


SMALL = ("--size", "32", "--preprocess", "imagenet")
CROPPED = ("--size", "72", "--crop", "64", "--flip", "0.5", "--preprocess", "imagenet")

# The rule was tuned on the first four; the others only judge it.
TRANSFERS = (
    Transfer("resnet20-mnist-1000", "resnet20-cifar10", "idx:mnist", 1000, 8, SMALL),
    Transfer("resnet20-svhn-4000", "resnet20-cifar10", "split:digits/svhn", 4000, 8, SMALL),
    Transfer("mobilenetv2-cartoon", "mobilenetv2-tiny", "images:pacs-96/cartoon", 1000, 8, CROPPED),
    Transfer("mobilenetv2-flowers", "mobilenetv2-tiny", "split:flowers102-96", 2040, 8, CROPPED),
    Transfer("resnet20-usps", "resnet20-cifar10", "idx:usps", 3000, 8, SMALL),
    Transfer("resnet56-mnist-1000", "resnet56-cifar10", "idx:mnist", 1000, 8, SMALL),
    Transfer("resnet56-svhn", "resnet56-cifar10", "split:digits/svhn", 4000, 8, SMALL),
    Transfer("vit-sketch", "vit-tiny", "images:pacs-96/sketch", 1000, 8, CROPPED),
    Transfer("resnet50h-flowers", "resnet50h-tiny", "split:flowers102-96", 2040, 8, CROPPED),
    Transfer("vit-flowers", "vit-tiny", "split:flowers102-96", 2040, 8, CROPPED),
    Transfer("resnet20-mnist", "resnet20-cifar10", "idx:mnist", 0, 2, SMALL),
)
TUNED_ON = 4
QUICK = ("resnet20-mnist-1000", "resnet20-usps", "mobilenetv2-cartoon")
TEST_IMAGES = 2000


# --- data -----------------------------------------------------------------------------------------------


def write_list(files: Sequence[Path], to: Path) -> None:
    to.write_text("".join(f"{file},{file.parent.name}\n" for file in files))


def cut_idx(source: Path, count: int, to: Path) -> None:
    """Writes the first `count` entries of an IDX file (gzip); all where that is 0."""
    content = gzip.decompress(source.read_bytes())
    rank, total = content[3], struct.unpack(">I", content[4:8])[0]
    start = 4 + 4 * rank
    each = (len(content) - start) // total
    kept = min(count or total, total)
    to.write_bytes(content[:4] + struct.pack(">I", kept) + content[8:start] + content[start : start + kept * each])


def prepare(transfer: Transfer, data: Path, work: Path) -> tuple[str, str] | None:
    """Writes the lists of a transfer; returns what to train and to judge on, None where images are missing."""
    kind, place = transfer.data.split(":")
    work.mkdir(parents=True, exist_ok=True)
    parts = {part: work / f"{transfer.name}-{part}" for part in ("train", "test")}
    if kind == "idx":
        pairs = {}
        for part, path in parts.items():
            names = [f"{path}-{what}.idx" for what in ("images", "labels")]
            for name, what in zip(names, ("images", "labels")):
                source = data / "digits" / f"{place}-{part}-{what}.idx.gz"
                if not source.exists():
                    return None
                cut_idx(source, transfer.count if part == "train" else TEST_IMAGES, Path(name))
            pairs[part] = ",".join(names)
        return pairs["train"], pairs["test"]
    shuffled = random.Random(1)
    if kind == "split":
        files = {part: sorted((data / place / part).glob("*/*.jpg")) for part in parts}
        for found in files.values():
            shuffled.shuffle(found)
    else:
        found = sorted((data / place).glob("*/*.jpg"))
        shuffled.shuffle(found)
        files = {"train": found[: transfer.count], "test": found[transfer.count :]}
    if not files["train"] or not files["test"]:
        return None
    lists = {part: path.with_suffix(".csv") for part, path in parts.items()}
    write_list(files["train"][: transfer.count or None], lists["train"])
    write_list(files["test"][:TEST_IMAGES], lists["test"])
    return str(lists["train"]), str(lists["test"])


# --- trainings ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bench:
    """What all trainings of a run share."""

    limber: Path
    models: Path
    data: Path
    work: Path
    threads: int
    places: common.Places
    say: Callable[[str], None]


@dataclass(frozen=True)
class Case:
    """A transfer from one beginning, with its images."""

    transfer: Transfer
    seed: int
    train: str
    test: str


ARMS = ("same_time", "fixed_rho", "chosen")


def arm_options(transfer: Transfer, arm: str, share: float, seconds: float) -> list[str]:
    """Returns how a transfer is trained in so many seconds, or with so large a share of each step."""
    if arm == "fixed_rho":
        return ["--epochs", str(transfer.epochs), "--rho", str(share), "--eval-every", str(transfer.epochs)]
    return [*(["--strategy", "full"] if arm == "same_time" else []), "--time", f"{seconds:.2f}s"]


def train(bench: Bench, case: Case, name: str, options: Sequence[str]) -> dict[str, Any]:
    """Trains once; what was done before is read. Returns accuracy, wall clock and updates."""
    folder = bench.work / f"{case.transfer.name}-s{case.seed}-{name}"
    done = bench.work / f"{folder.name}.json"
    if done.exists():
        return dict(json.loads(done.read_text()))
    command = [str(bench.limber), "train", str(bench.models / f"{case.transfer.model}.onnx"), "--data", case.train]
    command += ["--val", case.test, "--seed", str(case.seed), "--threads", str(bench.threads), "--json"]
    command += ["-o", str(folder), *case.transfer.options, *options]
    shutil.rmtree(folder, ignore_errors=True)  # of a bench that was interrupted: its wall clock means nothing
    with bench.places.take() as cores:
        start = time.monotonic()
        result = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT, preexec_fn=lambda: os.sched_setaffinity(0, cores)
        )
        wall = time.monotonic() - start
    if result.returncode != 0:
        raise common.WorkerError(f"{folder.name} failed: {common.tail(result.stderr)}")
    out = json.loads(result.stdout)
    lines = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    judged = [line for line in lines if line["kind"] == "train.epoch" and line.get("val_accuracy") is not None]
    made = {"accuracy": judged[-1]["val_accuracy"], "wall_s": wall, "updates": out["step"]}
    done.write_text(json.dumps(made))
    bench.say(f"{folder.name}: {made['accuracy']:.2%} in {wall:.0f} s")
    return made


def train_full(bench: Bench, case: Case) -> dict[str, Any]:
    epochs = str(case.transfer.epochs)
    return train(bench, case, "full", ["--epochs", epochs, "--eval-every", epochs])


def cases_of(bench: Bench, transfers: Sequence[Transfer], seeds: int) -> list[Case]:
    """Returns those whose model and images are there."""
    cases = []
    for transfer in transfers:
        images = prepare(transfer, bench.data, bench.work)
        if images is not None and (bench.models / f"{transfer.model}.onnx").exists():
            cases += [Case(transfer, seed, *images) for seed in range(seeds)]
        else:
            print(f"left out: {transfer.name}, its model or images are not there", file=sys.stderr)
    return cases


def measure(
    bench: Bench, transfers: Sequence[Transfer], seeds: int, shares: Sequence[float]
) -> list[dict[str, Any]]:
    """Returns a cell for each transfer, seed and share of the time. Trainings run side by side, one at each place."""
    cases = cases_of(bench, transfers, seeds)
    with concurrent.futures.ThreadPoolExecutor(bench.places.count) as pool:
        full = dict(zip(cases, pool.map(lambda case: train_full(bench, case), cases)))
        tasks = list(itertools.product(cases, shares, ARMS))
        tasks.sort(key=lambda task: -task[1] * full[task[0]]["wall_s"])  # the longest first: all places end together

        def train_arm(task: tuple[Case, float, str]) -> dict[str, Any]:
            case, share, arm = task
            seconds = share * full[case]["wall_s"]
            return train(bench, case, f"{arm}-{share}", arm_options(case.transfer, arm, share, seconds))

        made = dict(zip(tasks, pool.map(train_arm, tasks)))
    cells = []
    for case, share in itertools.product(cases, shares):
        arms = {arm: made[case, share, arm] for arm in ARMS}
        longest = max(arms[arm]["wall_s"] for arm in ("same_time", "chosen"))
        cell = {"transfer": case.transfer.name, "seed": case.seed, "share": share, "full": full[case], **arms}
        cell["excess"] = longest / (share * full[case]["wall_s"]) - 1
        cell["gain_points"] = 100 * (arms["chosen"]["accuracy"] - arms["same_time"]["accuracy"])
        cells.append(cell)
    return cells


def summarise(cells: Sequence[dict[str, Any]]) -> dict[str, float | None]:
    """Returns the figures that are asked for; judged apart are transfers that nothing was tuned on."""
    tuned = {transfer.name for transfer in TRANSFERS[:TUNED_ON]}

    def better(cell: dict[str, Any]) -> float:  # than the better of the two others
        rival = max(cell["same_time"]["accuracy"], cell["fixed_rho"]["accuracy"])
        return 100 * (cell["chosen"]["accuracy"] - rival)

    halves = [100 * (c["chosen"]["accuracy"] - c["full"]["accuracy"]) for c in cells if c["share"] == 0.5]
    judged = [cell["gain_points"] for cell in cells if cell["transfer"] not in tuned]
    return {
        "equal_time_gain_points_mean": statistics.fmean(c["gain_points"] for c in cells) if cells else None,
        "equal_time_gain_points_judged": statistics.fmean(judged) if judged else None,
        "equal_time_gain_points_worst": min(map(better, cells)) if cells else None,
        "half_time_gap_points_worst": min(halves, default=None),  # to full training with all the time
        "wall_clock_excess_worst": max((cell["excess"] for cell in cells), default=None),
    }


def print_cells(cells: Sequence[dict[str, Any]]) -> None:
    print(f"{'transfer':<22} seed  time  full, all  same time  fixed rho  chosen   wall")
    for c in cells:
        accuracies = "  ".join(f"{100 * c[arm]['accuracy']:>8.2f}" for arm in ("full", "same_time", "fixed_rho", "chosen"))
        print(f"{c['transfer']:<22} {c['seed']:>4}  {c['share']:>4.0%} {accuracies}  {1 + c['excess']:.3f}")
