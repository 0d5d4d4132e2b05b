"""What the benches have in common: peers' environment, timings of one engine, reports."""

from __future__ import annotations

import datetime
import json
import math
import os
import platform
import statistics
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Sequence

from peers import common

numpy = common.require_module("numpy", "python3-numpy")

RESULTS = common.ROOT / "bench" / "results"
TIMEOUT = 120.0
SETTLE_SECONDS = 0.03  # idle threads of the previous engine have stopped spinning by then


@dataclass
class Timings:
    """Times of one engine in milliseconds, one list per round."""

    rounds: list[list[float]] = field(default_factory=list)

    def all(self) -> list[float]:
        return [value for values in self.rounds for value in values]

    def median(self) -> float:
        return statistics.median(self.all())

    def percentile(self, percent: float) -> float:
        return float(numpy.percentile(self.all(), percent))

    def to_json(self) -> dict[str, Any]:
        return {
            "median_ms": self.median(),
            "p10_ms": self.percentile(10),
            "p90_ms": self.percentile(90),
            "runs": len(self.all()),
            "round_medians_ms": [statistics.median(values) for values in self.rounds],
        }


# --- engines ------------------------------------------------------------------------------------------


def openblas_folder() -> Path:
    """Returns the folder of the OpenBLAS that replaces the reference BLAS; raises UsageError without it."""
    for folder in sorted(Path("/usr/lib").glob("*/openblas-openmp")):
        if (folder / "libblas.so.3").exists():
            return folder
    raise common.UsageError(
        "PyTorch would run on the reference BLAS, which is no fair peer; "
        "install OpenBLAS with: apt-get install libopenblas0-openmp"
    )


def openblas_core() -> str:
    """Returns the name of OpenBLAS's kernels for this CPU, "" to leave the choice to OpenBLAS.

    OpenBLAS 0.3.21 takes processors newer than itself for a Prescott (SSE3) and is then six times slower than
    it could be, so the choice is made here by instruction set.
    """
    if "OPENBLAS_CORETYPE" in os.environ:
        return os.environ["OPENBLAS_CORETYPE"]
    flags = {word for line in cpu_lines("flags") for word in line.split()}
    if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= flags:
        return "SkylakeX"
    return "Haswell" if {"avx2", "fma"} <= flags else ""


def cpu_lines(key: str) -> list[str]:
    """Returns the values of a key of /proc/cpuinfo, one per core."""
    pairs = (line.partition(":") for line in Path("/proc/cpuinfo").read_text().splitlines())
    return [value.strip() for name, _, value in pairs if name.strip() == key]


def torch_environment(threads: int) -> dict[str, str]:
    """Returns the environment in which Debian's PyTorch finds OpenBLAS and uses `threads` threads."""
    paths = [str(openblas_folder()), os.environ.get("LD_LIBRARY_PATH", "")]
    core = openblas_core()
    return {
        **os.environ,
        "LD_LIBRARY_PATH": ":".join(path for path in paths if path),
        "OMP_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": str(threads),
        **({"OPENBLAS_CORETYPE": core} if core else {}),
    }


def start(worker: common.Worker, timeout: float) -> common.Worker:
    """Waits until a worker is ready; raises WorkerError, with the worker closed, if it does not get there."""
    try:
        answer = worker.receive(timeout)
        if answer != "ready":
            raise common.WorkerError(f"{worker.name}: said '{answer}' instead of 'ready'")
    except common.WorkerError:
        worker.close()
        raise
    return worker


def engine_info(worker: common.Worker) -> dict[str, Any]:
    """Returns what a peer says about itself; raises WorkerError if PyTorch runs without OpenBLAS."""
    info = dict(common.read_json(worker.ask("info", TIMEOUT), worker.name))
    if "blas" in info and "openblas" not in info["blas"]:
        raise common.WorkerError(f"{worker.name}: PyTorch loaded {info['blas']} instead of OpenBLAS")
    return info


def run_slice(worker: common.Worker, count: int, timeout: float = TIMEOUT) -> list[float]:
    """Runs `count` inferences or steps back to back and returns their times in milliseconds."""
    words = worker.ask(f"run {count}", timeout).split()
    try:
        times = [float(word) for word in words]
    except ValueError as error:
        raise common.WorkerError(f"{worker.name}: answered '{words[:3]}' instead of times") from error
    if len(times) != count:
        raise common.WorkerError(f"{worker.name}: answered {len(times)} times instead of {count}")
    return times


# --- reports ------------------------------------------------------------------------------------------


def round_ratios(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, float]:
    """Returns the spread of the ratios of single rounds."""
    pairs = zip(ours["round_medians_ms"], theirs["round_medians_ms"])
    rounds = [one / other for one, other in pairs]
    return {
        "round_ratio_p10": float(numpy.percentile(rounds, 10)),
        "round_ratio_p90": float(numpy.percentile(rounds, 90)),
    }


def geomean(values: Sequence[float]) -> float | None:
    """Returns the geometric mean, None of nothing."""
    return math.exp(statistics.fmean(math.log(value) for value in values)) if values else None


def host(limber: Path | None, load: float) -> dict[str, Any]:
    """Describes where and with which limber the figures were made."""
    names = cpu_lines("model name")
    version = None
    if limber is not None:
        result = subprocess.run([str(limber), "--version"], capture_output=True, text=True, check=False)
        version = result.stdout.strip().splitlines()[0] if result.stdout.strip() else None
    return {
        "cpu": names[0] if names else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "load_before": load,
        "limber": version,
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    }


def torch_version(info: dict[str, Any]) -> dict[str, Any]:
    """Returns what the results record about PyTorch, from its worker's answer to `info`."""
    return {
        "torch": info.get("version"),
        "torch_blas": info.get("blas"),
        "torch_blas_core": openblas_core() or "chosen by OpenBLAS",
        "torch_matmul_gflops": info.get("matmul_gflops"),
    }


def load_before() -> float:
    """Returns the machine's load; warns on stderr when it is too high to measure."""
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"warning: the machine is busy (load {load:.2f}); do not trust these figures", file=sys.stderr)
    return load


def write_results(results: dict[str, Any], file: Path) -> None:
    """Writes the JSON file so that an interrupted run leaves the old one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(file.name + ".part")
    part.write_text(json.dumps(results, indent=1) + "\n")
    os.replace(part, file)
    print(f"written: {file}")
