#!/usr/bin/python3
"""Measures what adapting costs those who are answered meanwhile: `limber serve` with --adapt against without.

Both serve the same model and get the same images of another domain at the same rate, in turns, so that a machine that
becomes slower does so for both. The images are some of --data with noise, others are the source. One line for each turn, then the summary as
JSON: the 99th percentile with adapting by that without, the shares that were right, what was learnt.
Exit codes: 0 measured, 1 a server failed or an answer was lost, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
NOISE = 0.10  # deviation of what is added to pixels in 0..1: the strongest noise of the usual benchmark at 32 pixels
READY_S = 300  # for a server to get ready


def write_images(data: str, count: int, folder: Path) -> tuple[str, str]:
    """Writes images for the source, and others with noise, that class folders hold; returns what commands call them."""
    classes = sorted(entry for entry in Path(data).iterdir() if entry.is_dir())
    files = [(file, label) for label, entry in enumerate(classes) for file in sorted(entry.iterdir())]
    random = numpy.random.default_rng(0)
    chosen = [files[k] for k in random.permutation(len(files))[: 2 * count]]
    pixels = numpy.stack([numpy.asarray(Image.open(file).convert("RGB")) for file, _ in chosen])
    labels = numpy.array([label for _, label in chosen], numpy.int64)
    noisy = numpy.clip(pixels[count:] / 255 + random.normal(0, NOISE, pixels[count:].shape), 0, 1)
    return (write_pair(folder, "source", pixels[:count], labels[:count]),
            write_pair(folder, "noisy", (noisy * 255).astype(numpy.uint8), labels[count:]))


def write_pair(folder: Path, name: str, pixels: Any, labels: Any) -> str:
    numpy.save(folder / f"{name}-images.npy", pixels)
    numpy.save(folder / f"{name}-labels.npy", labels)
    return f"{folder}/{name}-images.npy,{folder}/{name}-labels.npy"


@contextlib.contextmanager
def server(words: list[str]) -> Iterator[str]:
    """A server while the block runs; gives its address."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(f"{' '.join(words)} ended with {process.wait()}")
            yield json.loads(line)["url"]
        finally:
            process.terminate()
            process.wait(60)


def adaptation(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{url}/v2/limber/status", timeout=30) as answer:
        return dict(json.load(answer)["models"][0].get("adaptation") or {})


def wait_until_followed(url: str) -> None:
    end = time.monotonic() + READY_S
    while adaptation(url).get("state") != "following":
        if time.monotonic() > end:
            raise RuntimeError(f"not followed after {READY_S} s: {adaptation(url)}")
        time.sleep(0.5)


def load(options: argparse.Namespace, url: str, images: str, seconds: float, seed: int) -> dict[str, Any]:
    words = [options.limber, "loadgen", url, "--json", "--rate", options.rate, "--seconds", seconds, "--data", images, "--images",
             options.images, "--seed", seed, *options.prepared]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"loadgen failed: {done.stderr}")
    return dict(json.loads(done.stdout))


def measure(options: argparse.Namespace, source: str, images: str) -> list[dict[str, Any]]:
    serve = [options.limber, "serve", options.model, *options.prepared, "--http-port", "0", "--grpc-port", "-1", "--json", "--workers",
             str(options.workers)]
    turns = []
    for turn in range(2 * options.turns):
        follows = turn % 2 == 1
        adapt = ["--adapt", options.method, "--adapt-data", source, "--adapt-share", options.share] if follows else []
        with server([*serve, *adapt]) as url:
            if follows:
                wait_until_followed(url)
            load(options, url, images, options.warm, turn)
            result = load(options, url, images, options.seconds, turn)
            told = adaptation(url)
        result |= {"follows": follows, "told": {key: value for key, value in told.items() if key not in ("events", "points")},
                   "busy": os.getloadavg()[0]}
        turns.append(result)
        print(json.dumps(result), file=sys.stderr, flush=True)
    return turns


def summary(turns: list[dict[str, Any]]) -> dict[str, Any]:
    def median(follows: bool, value: Any) -> float:
        return statistics.median(value(turn) for turn in turns if turn["follows"] == follows)

    def p99(turn: dict[str, Any]) -> float:
        return float(turn["latency_s"]["p99"])

    return {"p99_with_s": median(True, p99), "p99_without_s": median(False, p99), "p99_ratio": median(True, p99) / median(False, p99),
            "p50_ratio": median(True, lambda t: t["latency_s"]["p50"]) / median(False, lambda t: t["latency_s"]["p50"]),
            "accuracy_with": median(True, lambda t: t["accuracy"]), "accuracy_without": median(False, lambda t: t["accuracy"]),
            "lost": sum(turn["lost"] + turn["refused"] for turn in turns), "load_of_machine": [turn["busy"] for turn in turns]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--data", required=True, help="a folder of class folders with images of the right size")
    parser.add_argument("--limber", default=str(ROOT / "build/release/limber"))
    parser.add_argument("--prepared", default="", help="how the model wants its images, as options of limber")
    parser.add_argument("--method", default="bn")
    parser.add_argument("--share", default="25%")
    parser.add_argument("--rate", type=float, default=100)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--warm", type=float, default=15, help="seconds before, in which the model adapts")
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--turns", type=int, default=3, help="of each")
    options = parser.parse_args()
    options.prepared = options.prepared.split()
    with tempfile.TemporaryDirectory() as folder:
        turns = measure(options, *write_images(options.data, options.images, Path(folder)))
    result = summary(turns)
    print(json.dumps(result, indent=1))
    return 0 if result["lost"] == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
