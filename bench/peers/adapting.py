"""What bench/adapt.py needs of the engine: streams that are followed, a server that adapts beside one that does not."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Sequence

from peers import common, measure, serving

numpy = measure.numpy

SHARED = Path(os.environ.get("LIMBER_SHARED", common.ROOT.parent / "shared"))
DATA = Path(os.environ.get("LIMBER_DATA", Path.home() / ".cache" / "limber-data"))
PIXELS = ["--mean", "0.485,0.456,0.406", "--std", "0.229,0.224,0.225"]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def model(name: str) -> Path:
    return SHARED / "models" / f"{name}.onnx"


def is_there(name: str, source: str) -> bool:
    return model(name).exists() and (DATA / source).exists()


def call(command: Sequence[str]) -> str:
    """Returns what the program printed; raises WorkerError with the end of its errors when it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise common.WorkerError(f"{' '.join(command[:3])} failed: {common.tail(done.stderr)}")
    return done.stdout


@dataclass(frozen=True)
class Run:
    """A stream that was followed."""

    result: dict[str, Any]
    memory: int  # bytes that were resident at most

    @property
    def summary(self) -> dict[str, Any]:
        return dict(self.result["summary"])

    @property
    def windows(self) -> list[dict[str, Any]]:
        return list(self.result["windows"])

    @property
    def frames(self) -> int:
        return int(self.result["frames"])


def run(command: Sequence[str]) -> Run:
    """Runs `limber adapt ... --json`."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=out, stderr=errors, text=True)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        errors.seek(0)
        if process.returncode != 0:
            raise common.WorkerError(f"{' '.join(command[:3])} failed: {common.tail(errors.read())}")
        return Run(common.read_json(out.read(), "limber adapt"), usage.ru_maxrss * 1024)


# --- serving ------------------------------------------------------------------------------------------------

NOISE = 0.10  # deviation of what is added to pixels in 0..1: the strongest noise of the usual benchmark at 32 pixels
FOLLOWED_S = 300.0  # for a server to look at the source
RATE = 100  # requests a second


def write_images(data: Path, count: int, folder: Path) -> tuple[str, str]:
    """Writes images for the source, and others with noise, that class folders hold; returns what commands call them."""
    image = common.require_module("PIL.Image", "python3-pil")
    classes = sorted(entry for entry in data.iterdir() if entry.is_dir())
    files = [(file, label) for label, entry in enumerate(classes) for file in sorted(entry.iterdir())]
    random = numpy.random.default_rng(0)
    chosen = [files[k] for k in random.permutation(len(files))[: 2 * count]]
    pixels = numpy.stack([numpy.asarray(image.open(file).convert("RGB")) for file, _ in chosen])
    labels = numpy.array([label for _, label in chosen], numpy.int64)
    noisy = numpy.clip(pixels[count:] / 255 + random.normal(0, NOISE, pixels[count:].shape), 0, 1)
    return (
        _write_pair(folder, "source", pixels[:count], labels[:count]),
        _write_pair(folder, "noisy", (noisy * 255).astype(numpy.uint8), labels[count:]),
    )


def _write_pair(folder: Path, name: str, pixels: Any, labels: Any) -> str:
    numpy.save(folder / f"{name}-images.npy", pixels)
    numpy.save(folder / f"{name}-labels.npy", labels)
    return f"{folder}/{name}-images.npy,{folder}/{name}-labels.npy"


def _wait_until_followed(server: serving.Server) -> None:
    deadline = time.monotonic() + FOLLOWED_S
    while (told := server.status().get("adaptation") or {}).get("state") != "following":
        if time.monotonic() > deadline:
            raise common.WorkerError(f"{server.name} does not follow after {FOLLOWED_S:.0f} s: {told}")
        time.sleep(0.2)


def _turn(limber: Path, options: serving.ServeOptions, images: str, count: int, seconds: float, seed: int) -> dict[str, Any]:
    follows = "--adapt" in options.more
    arguments = ["--rate", str(RATE), "--data", images, "--images", str(count), "--seed", str(seed), *PIXELS]
    with serving.limber_server(limber, options) as server:
        if follows:
            _wait_until_followed(server)
        serving.load(limber, server, seconds / 2, *arguments)
        result = serving.load(limber, server, seconds, *arguments)
        told = server.status().get("adaptation") or {}
    lost = int(result["lost"]) + int(result["refused"])
    return {
        "follows": follows,
        "p99_s": float(result["latency_s"]["p99"]),
        "p50_s": float(result["latency_s"]["p50"]),
        "accuracy": result["accuracy"],
        "lost": lost,
        "told": {key: value for key, value in told.items() if key not in ("events", "points")},
    }


def serve_ratio(limber: Path, network: Path, data: Path, seconds: float, turns: int) -> dict[str, Any]:
    """`limber serve` with --adapt against without, in turns: the same images with noise at the same rate."""
    count = 2000
    with tempfile.TemporaryDirectory() as folder:
        source, noisy = write_images(data, count, Path(folder))
        plain = serving.ServeOptions(str(network), threads=1, more=tuple(PIXELS))
        adapt = ("--adapt", "bn", "--adapt-data", source)
        following = serving.ServeOptions(str(network), threads=1, more=(*PIXELS, *adapt))
        rows: list[dict[str, Any]] = []
        for turn in range(2 * turns):
            rows.append(_turn(limber, following if turn % 2 else plain, noisy, count, seconds, turn))
            say(f"serve, {'following' if turn % 2 else 'as it came'}: p99 {1e3 * rows[-1]['p99_s']:.2f} ms, {rows[-1]['accuracy']:.1%} right")

    def median(follows: bool, key: str) -> float:
        return statistics.median(row[key] for row in rows if row["follows"] == follows)

    return {
        "p99_ratio": median(True, "p99_s") / median(False, "p99_s"),
        "p50_ratio": median(True, "p50_s") / median(False, "p50_s"),
        "accuracy_with": median(True, "accuracy"),
        "accuracy_without": median(False, "accuracy"),
        "lost": sum(row["lost"] for row in rows),
        "turns": rows,
    }
