"""What bench/adapt.py needs of the engine: streams that are followed, a server that adapts beside one that does not."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Sequence

from peers import common, serving

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
