"""The elastic model that bench/serve.py serves, and what its parts share."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peers import common, serving

SHARED = Path(os.environ.get("LIMBER_SHARED", common.ROOT.parent / "shared"))
CIFAR = Path(os.environ.get("LIMBER_DATA", Path.home() / ".cache" / "limber-data")) / "cifar10"
PIXELS = ("--mean", "0.485,0.456,0.406", "--std", "0.229,0.224,0.225")
SHARES = (0.8, 0.6, 0.45, 0.3)  # latencies that variants are searched for


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Elastic:
    """An elastic model with variants in its table, and what it came from."""

    folder: Path
    data: str
    onnx: Path  # the model as it was
    variants: list[str]  # that searches found


class Bench:
    """What the parts share."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.limber = common.limber_binary(arguments.limber)
        self.quick: bool = arguments.quick
        self.threads: int = arguments.threads  # of each worker
        self.workers: int = arguments.workers
        self.arguments = arguments
        self.work: Path = arguments.work
        self.work.mkdir(parents=True, exist_ok=True)
        self.cores = use_cores(arguments.cores)

    def call(self, *words: str) -> str:
        done = subprocess.run([str(self.limber), *words], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise common.WorkerError(f"limber {words[0]} failed: {common.tail(done.stderr)}")
        return done.stdout

    def load(
        self, server: serving.Server, seconds: float, *words: str, records: Path | None = None
    ) -> dict[str, Any]:
        return serving.load(self.limber, server, seconds, *words, records=records)

    def pick(self, full: float, quick: float) -> float:
        return quick if self.quick else full


def use_cores(count: int) -> list[int]:
    """Pins this process, and with it all it starts, to so many cores."""
    cores = sorted(os.sched_getaffinity(0))[: max(1, count)]
    os.sched_setaffinity(0, cores)
    return cores


# --- the model --------------------------------------------------------------------------------------------


def elastic_model(bench: Bench) -> Elastic:
    """Returns the elastic model, made the first time."""
    own = bench.arguments.model
    if own is not None:
        if not bench.arguments.data:
            raise common.UsageError("--model needs --data: the images it is judged by")
        folder, data, onnx = own, bench.arguments.data, bench.work / f"{own.name}.onnx"
        if not onnx.exists():
            bench.call("export", str(own), "-o", str(onnx))
    else:
        folder, data, onnx = teach(bench)
    return Elastic(folder, data, onnx, found_variants(bench, folder, data))


def teach(bench: Bench) -> tuple[Path, str, Path]:
    """Makes a network elastic: a trained ResNet-56 where it and its data are there, else a built-in one."""
    pretrained = SHARED / "models" / "resnet56-cifar10.onnx"
    seconds = bench.pick(600, 40)
    if pretrained.exists() and CIFAR.exists():
        source, onnx, data, name = str(pretrained), pretrained, str(CIFAR), f"resnet56-{seconds:.0f}s"
        changes = [*PIXELS, "--batch", "64", "--flip", "0.5", "--padding", "4"]
    else:
        data, name = f"synthetic:count={bench.pick(6000, 1500):.0f}", f"resnet14-{seconds:.0f}s"
        source, onnx = str(bench.work / f"{name}-trained"), bench.work / f"{name}.onnx"
        changes = ["--batch", "32"]
        if not onnx.exists():
            say("training the network")
            epochs = str(int(bench.pick(12, 3)))
            bench.call("train", "builtin:resnet14", "--data", data, "--epochs", epochs, "-o", source)
            bench.call("export", source, "-o", str(onnx))
    folder = bench.work / name
    if not (folder / "taught").exists():
        say(f"making it elastic ({seconds:.0f} s)")
        words = ["--data", data, *changes, "--budget", f"{seconds:.0f}s", "-o", str(folder), "--resume"]
        bench.call("elastify", source, *words)
        (folder / "taught").touch()
    return folder, data, onnx


def found_variants(bench: Bench, folder: Path, data: str) -> list[str]:
    """Fills the variant table for several latencies; returns the best variant for each."""
    file = bench.work / f"{folder.name}-variants.json"
    if not file.exists():
        found = []
        for share in SHARES:
            say(f"searching for {share:.0%} of the latency")
            words = ["--latency", f"{share:.0%}", "--threads", str(bench.threads), "--data", data, "--json"]
            words += ["--evaluations", f"{bench.pick(200, 60):.0f}", "--images", f"{bench.pick(500, 200):.0f}"]
            try:
                found.append(str(json.loads(bench.call("search", str(folder), *words))["variant"]))
            except common.WorkerError as error:  # nothing may be as fast as that
                say(f"none: {error}")
        file.write_text(json.dumps(found))
    return [str(name) for name in json.loads(file.read_text())]


def image_words(elastic: Elastic) -> list[str]:
    return ["--data", elastic.data, "--like", str(elastic.folder), "--images", "1000"]
