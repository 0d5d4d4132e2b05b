"""Helpers shared by `tests/models`, `tests/parity` and `bench`: paths, peers, workers, comparisons.

Needs only the standard library until a function that handles tensors is called.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import queue
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Iterator, NoReturn, Sequence, TypeVar

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "build" / "models"
TRAINING_MODELS = MODELS / "training"
SHARED_MODELS = ROOT.parent / "shared" / "models"
EXPORT = ROOT / "tests" / "models" / "export.py"
LIMBER = ROOT / "build" / "release" / "limber"
PEERS = Path(__file__).resolve().parent
NODE_PREFIX = ROOT / "build" / "peers"
PYTHON = "/usr/bin/python3"
RANGE_KEY = "input_range:"  # metadata of an exported model: "low high" of an integer input, high excluded

T = TypeVar("T")


class UsageError(Exception):
    """The call is wrong or something it needs is not installed; the message says what to do. Exit code 2."""


class WorkerError(Exception):
    """A peer answered an error or something unreadable."""


class WorkerDied(WorkerError):
    """A peer's process ended or did not answer in time; it cannot be asked again."""


def run_main(main: Callable[[], int]) -> NoReturn:
    """Runs `main` as the program: its result is the exit code, a WorkerError gives 1, a UsageError 2."""
    try:
        sys.exit(main())
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except WorkerError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


def make_parser(description: str | None) -> argparse.ArgumentParser:
    """Returns a parser that prints the script's docstring as it is written."""
    return argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def number_list(text: str) -> list[int]:
    """Parses "1,2": positive integers, for argparse."""
    numbers = [int(part) for part in text.split(",")]
    if min(numbers) < 1:
        raise argparse.ArgumentTypeError(f"{min(numbers)} is less than 1")
    return numbers


def require_module(name: str, package: str) -> ModuleType:
    """Imports a Python module or ends the program with the Debian package that holds it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        print(
            f"error: the Python module '{name}' is missing from {sys.executable} ({error}).\n"
            f"Install it with: apt-get install {package}   and run this script with {PYTHON}.",
            file=sys.stderr,
        )
        sys.exit(2)


def select(items: Sequence[T], names: str, key: Callable[[T], str]) -> list[T]:
    """Returns the items whose key is in the comma-separated `names` (all when empty), in their own order."""
    wanted = [name for name in names.split(",") if name]
    known = {key(item) for item in items}
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise UsageError(f"unknown: {', '.join(unknown)}; known: {', '.join(sorted(known))}")
    return [item for item in items if not wanted or key(item) in wanted]


# --- models -------------------------------------------------------------------------------------------


def exportable() -> list[str]:
    """Returns the names of the models tests/models/export.py knows; raises UsageError if it cannot run."""
    return _run_exporter("--list").split()


def export_models(names: Sequence[str]) -> None:
    """Brings these models in build/models up to date; raises UsageError if the exporter fails."""
    if names:
        _run_exporter("--models", ",".join(names))


def export_training_models(names: Sequence[str]) -> None:
    """The same for build/models/training, whose files keep every parameter apart."""
    export_models(names)
    if names:
        _run_script(PEERS / "export_training.py", *names)


def _run_exporter(*arguments: str) -> str:
    return _run_script(EXPORT, *arguments)


def _run_script(script: Path, *arguments: str) -> str:
    result = subprocess.run([PYTHON, str(script), *arguments], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise UsageError(f"{script.relative_to(ROOT)} failed:\n{tail(result.stderr, 8)}")
    return result.stdout


# --- peers --------------------------------------------------------------------------------------------


def node_command(script: Path, *arguments: str) -> list[str]:
    """Returns the command that runs one of our Node scripts, installing onnxruntime-node when missing.

    Raises UsageError when Node is missing or the installation fails.
    """
    node = shutil.which("node")
    if node is None:
        raise UsageError("'node' is not installed; install it with: apt-get install nodejs npm")
    result = subprocess.run(["bash", str(PEERS / "install.sh")], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise UsageError(f"cannot install onnxruntime-node:\n{result.stderr.strip()}")
    return [node, str(script), *arguments]


def node_environment() -> dict[str, str]:
    """Returns the environment in which our Node scripts find onnxruntime-node."""
    return {**os.environ, "NODE_PATH": str(NODE_PREFIX / "node_modules")}


def limber_binary(path: Path) -> Path:
    """Returns the absolute path of the limber executable or raises UsageError."""
    if not path.is_file() or not os.access(path, os.X_OK):
        raise UsageError(f"no limber executable at {path}: run './run build' or name one with --limber")
    return path.resolve()


def run_quietly(command: Sequence[str], timeout: float) -> None:
    """Runs a command; raises WorkerError with the end of what it printed when it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout)
    if done.returncode != 0:
        raise WorkerError(f"{' '.join(command)} failed: {tail(done.stdout)}")


def tail(text: str, lines: int = 5) -> str:
    """Returns the last lines of a program's output, for error messages."""
    return "\n".join(text.strip().splitlines()[-lines:])


class Places:
    """Cores for processes side by side: so many groups that share none."""

    def __init__(self, count: int, cores_each: int) -> None:
        self.count = count
        self._free: queue.Queue[list[int]] = queue.Queue()
        cores = sorted(os.sched_getaffinity(0))
        for place in range(count):
            self._free.put(cores[place * cores_each : (place + 1) * cores_each] or cores)

    @contextlib.contextmanager
    def take(self) -> Iterator[list[int]]:
        """Waits for a group of cores and lends it."""
        cores = self._free.get()
        try:
            yield cores
        finally:
            self._free.put(cores)


class Worker:
    """A long-lived process that answers one line per line.

    Its stderr goes to a file whose end is quoted in errors. Not thread-safe; close() or `with` ends it.
    """

    def __init__(self, name: str, command: Sequence[str], environment: dict[str, str] | None = None) -> None:
        self.name = name
        self._log = tempfile.TemporaryFile("w+")
        self._buffer = b""
        self._process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment,
        )

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, line: str, timeout: float) -> str:
        """Sends a line and returns the answer.

        Raises WorkerError if it is "error ...", WorkerDied if there is none within `timeout` seconds.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            self._fail(f"ended before '{line}'")
        return self.receive(timeout)

    def receive(self, timeout: float) -> str:
        """Returns the next line; raises as ask() does."""
        assert self._process.stdout is not None
        deadline = time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    self._fail(f"gave no answer within {timeout:.0f} s")
                chunk = os.read(self._process.stdout.fileno(), 1 << 16)
                if not chunk:
                    self._fail("ended unexpectedly")
                self._buffer += chunk
        line, self._buffer = self._buffer.split(b"\n", 1)
        answer = line.decode().strip()
        if answer.startswith("error"):
            raise WorkerError(f"{self.name}: {answer}")
        return answer

    def close(self) -> None:
        """Asks the process to quit, and kills it if it does not within five seconds."""
        try:
            self._process.communicate(b"quit\n", timeout=5)
        except (OSError, ValueError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        self._log.close()

    def _fail(self, what: str) -> NoReturn:
        self._log.seek(0)
        raise WorkerDied(f"{self.name} {what}. {tail(self._log.read())}")


# --- tensors ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class InputSpec:
    """A graph input; a dimension that is not a number is the batch."""

    name: str
    dtype: str  # numpy's name
    dims: tuple[int | str, ...]
    low: int  # range [low, high) of integer values
    high: int


def model_inputs(model: Path) -> list[InputSpec]:
    """Reads the inputs of an ONNX file, without its external data. Raises UsageError if it is unreadable."""
    onnx = require_module("onnx", "python3-onnx")
    try:
        proto = onnx.load(str(model), load_external_data=False)
    except Exception as error:  # protobuf's error types differ between its implementations
        raise UsageError(f"{model} is not a readable ONNX file: {error}") from error
    metadata = {entry.key: entry.value for entry in proto.metadata_props}
    weights = {tensor.name for tensor in proto.graph.initializer}
    return [_input_spec(onnx, value, metadata) for value in proto.graph.input if value.name not in weights]


def _input_spec(onnx: ModuleType, value: Any, metadata: dict[str, str]) -> InputSpec:
    tensor = value.type.tensor_type
    dims = tuple(d.dim_value if d.HasField("dim_value") else d.dim_param or "N" for d in tensor.shape.dim)
    low, high = (int(part) for part in metadata.get(RANGE_KEY + value.name, "0 2").split())
    return InputSpec(value.name, onnx.mapping.TENSOR_TYPE_TO_NP_TYPE[tensor.elem_type].name, dims, low, high)


def random_input(spec: InputSpec, batch: int, seed: int) -> Any:
    """Returns a seeded array for the input: standard normal floats, integers in its range, coin flips."""
    numpy = require_module("numpy", "python3-numpy")
    shape = [dim if isinstance(dim, int) else batch for dim in spec.dims]
    generator = numpy.random.default_rng([seed, batch, *spec.name.encode()])
    if spec.dtype.startswith("float"):
        return generator.standard_normal(shape).astype(spec.dtype)
    return generator.integers(spec.low, spec.high, shape).astype(spec.dtype)


@dataclass(frozen=True)
class Difference:
    """How far a result is from the reference.

    relative: max |d| / max |ref|, the figure that decides; elementwise: max |d| / (|ref| + 1e-3 max |ref|).
    Both are infinite when shapes, types, integers or the places of NaN and infinities disagree (`why`).
    """

    relative: float
    elementwise: float
    why: str = ""


def compare(reference: Any, result: Any) -> Difference:
    """Compares two arrays; integers and booleans must be equal."""
    numpy = require_module("numpy", "python3-numpy")
    infinite = float("inf")
    if reference.shape != result.shape or reference.dtype != result.dtype:
        why = f"{result.dtype}{list(result.shape)} instead of {reference.dtype}{list(reference.shape)}"
        return Difference(infinite, infinite, why)
    if reference.dtype.kind != "f":
        wrong = int(numpy.count_nonzero(reference != result))
        if wrong:
            return Difference(infinite, infinite, f"{wrong} of {reference.size} differ")
        return Difference(0.0, 0.0)
    ref, res = reference.astype(numpy.float64), result.astype(numpy.float64)
    finite = numpy.isfinite(ref)
    same = numpy.array_equal(ref[~finite], res[~finite], equal_nan=True)
    if not same or not numpy.isfinite(res[finite]).all():
        return Difference(infinite, infinite, "NaN or infinity in other places")
    ref, distance = numpy.abs(ref[finite]), numpy.abs(ref[finite] - res[finite])
    if not distance.size or not distance.max():
        return Difference(0.0, 0.0)
    scale = ref.max()
    if not scale:
        return Difference(infinite, infinite, f"{distance.max():.3g} instead of all zero")
    return Difference(float(distance.max() / scale), float((distance / (ref + 1e-3 * scale)).max()))


def read_json(text: str, source: str) -> Any:
    """Parses JSON written by a peer or by limber; raises WorkerError naming the source."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise WorkerError(f"{source} is not JSON: {error}") from error
