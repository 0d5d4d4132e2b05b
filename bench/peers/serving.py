"""What bench/serve.py is made of: servers, load, pressure on the machine, and what became of requests."""

from __future__ import annotations

import csv
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Sequence

from peers import common, measure

numpy = measure.numpy

READY_TIMEOUT = 180.0
LOAD_EXTRA = 60.0  # seconds that a load generator may take beyond what was asked for


# --- servers ----------------------------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """A process that speaks the Open Inference Protocol on 127.0.0.1; `with` or close() ends it."""

    def __init__(
        self, name: str, command: Sequence[str], port: int, environment: dict[str, str] | None = None
    ) -> None:
        self.name = name
        self.port = port
        self._log = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(
            list(command), stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, env=environment
        )
        try:
            self._wait_ready()
            index = self.ask("POST", "/v2/repository/index", {})
            self.model = str(index[0]["name"])
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + READY_TIMEOUT
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise common.WorkerDied(f"{self.name} ended at its start: {self.log()}")
            try:
                if self.request("GET", "/v2/health/ready", None)[0] == 200:
                    return
            except (OSError, http.client.HTTPException):
                pass
            time.sleep(0.05)
        raise common.WorkerDied(f"{self.name} is not ready after {READY_TIMEOUT:.0f} s: {self.log()}")

    def request(self, method: str, path: str, value: Any, timeout: float = 10.0) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, None if value is None else json.dumps(value))
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def ask(self, method: str, path: str, value: Any = None) -> Any:
        """Returns the answer's JSON; raises WorkerError for another status than 200."""
        status, body = self.request(method, path, value)
        if status != 200:
            raise common.WorkerError(f"{self.name}: {method} {path} gives {status}: {body[:200]!r}")
        return common.read_json(body.decode() or "null", f"{self.name} {path}")

    def status(self) -> dict[str, Any]:
        """What limber says of its first model; empty of another server."""
        status, body = self.request("GET", "/v2/limber/status", None)
        models = json.loads(body).get("models", []) if status == 200 else []
        return dict(models[0]) if models else {}

    def alive(self) -> bool:
        return self._process.poll() is None

    def resident(self) -> int:
        """Bytes of memory that the process holds."""
        if not self.alive():
            raise common.WorkerDied(f"{self.name} ended: {self.log()}")
        text = Path(f"/proc/{self._process.pid}/statm").read_text()
        return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def log(self) -> str:
        self._log.seek(0)
        return common.tail(self._log.read())

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                print(f"warning: {self.name} did not end within 15 s of SIGTERM", file=sys.stderr)
                self._process.kill()
                self._process.wait()
        self._log.close()


@dataclass(frozen=True)
class ServeOptions:
    """What `limber serve` is told; the one place that knows its options."""

    model: str
    threads: int  # of each worker
    workers: int = 1
    latency_s: float | None = None
    policy: str = "fixed"  # fixed, reactive, feedback, forecast
    debug: bool = False
    more: tuple[str, ...] = ()

    def command(self, limber: Path, port: int) -> list[str]:
        command = [str(limber), "serve", self.model, "--http-port", str(port), "--grpc-port", "-1"]
        command += ["--threads", str(self.threads), "--workers", str(self.workers)]
        if self.latency_s is not None:
            command += ["--latency", f"{self.latency_s * 1e3:.3f}ms"]
        command += ["--fixed"] if self.policy == "fixed" else ["--policy", self.policy]
        return [*command, *(["--debug"] if self.debug else []), *self.more]


def limber_server(limber: Path, options: ServeOptions) -> Server:
    port = free_port()
    return Server(f"limber serve ({options.policy})", options.command(limber, port), port)


def node_server(model: Path, threads: int) -> Server:
    port = free_port()
    command = common.node_command(common.PEERS / "ort_server.js", str(model), str(port), str(threads), "model")
    return Server("onnxruntime-node", command, port, common.node_environment())


# --- load -------------------------------------------------------------------------------------------------


def _go_first() -> None:
    """Before what shares the machine, as far as one may: clients are elsewhere and do not get slow with it."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except OSError:
        try:
            os.nice(-10)
        except OSError:
            pass


class Load:
    """A run of `limber loadgen` against a server; `first`: it does not wait for others that want the processor."""

    def __init__(
        self, limber: Path, server: Server, *arguments: str, records: Path | None = None, first: bool = False
    ) -> None:
        self.records = records
        command = [str(limber), "loadgen", server.url, "--model", server.model, "--json", *arguments]
        if records is not None:
            command += ["--records", str(records)]
        self.called = time.time()
        self._process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=_go_first if first else None,
        )

    def priority(self) -> str:
        """How the system treats it while it runs."""
        pid = self._process.pid
        if os.sched_getscheduler(pid) == os.SCHED_RR:
            return "real time"
        return f"nice {os.getpriority(os.PRIO_PROCESS, pid)}"

    def interrupt(self) -> None:
        """Nothing more is sent; the result is of what was."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)

    def result(self, timeout: float) -> dict[str, Any]:
        try:
            out, err = self._process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired as error:
            self._process.kill()
            self._process.wait()
            raise common.WorkerDied(f"limber loadgen did not end within {timeout:.0f} s") from error
        if self._process.returncode != 0:
            raise common.WorkerError(f"limber loadgen failed: {common.tail(err)}")
        return dict(common.read_json(out, "limber loadgen"))

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def load(
    limber: Path,
    server: Server,
    seconds: float,
    *arguments: str,
    records: Path | None = None,
    first: bool = False,
) -> dict[str, Any]:
    """Runs it for so many seconds and returns what it says."""
    run = Load(limber, server, "--seconds", f"{seconds:g}", *arguments, records=records, first=first)
    return run.result(seconds + LOAD_EXTRA)


@dataclass
class Records:
    """Requests that were well-formed, in the order they were due; times are seconds after the start."""

    due: Any
    latency: Any  # infinite without a good answer
    done: Any
    right: Any  # 1, 0; -1: unknown
    predicted: Any
    variant: list[str]

    @staticmethod
    def read(file: Path) -> Records:
        with file.open() as lines:
            rows = [row for row in csv.DictReader(lines) if row["malformed"] == "0"]
        good = numpy.array([row["status"] == "200" for row in rows], dtype=bool)
        due = numpy.array([float(row["due_s"]) for row in rows])
        done = numpy.array([float(row["done_s"]) if row["done_s"] else numpy.inf for row in rows])
        predicted = numpy.array([int(row["predicted"] or -1) for row in rows], dtype=int)
        label = numpy.array([int(row["label"] or -1) for row in rows], dtype=int)
        known = good & (predicted >= 0) & (label >= 0)
        return Records(
            due=due,
            latency=numpy.where(good, done - due, numpy.inf),
            done=done,
            right=numpy.where(known, (predicted == label).astype(int), -1),
            predicted=predicted,
            variant=[row["variant"] for row in rows],
        )

    def between(self, start: float, end: float) -> Any:
        return (self.due >= start) & (self.due < end)


def mean_of(values: Any) -> float | None:
    """The mean of what is finite, None of nothing."""
    finite = values[numpy.isfinite(values)]
    return float(finite.mean()) if finite.size else None


def percentile(values: Any, percent: float) -> float | None:
    """Requests without an answer count as infinitely late; None where that, or nothing, is the answer."""
    if not values.size:
        return None
    value = float(numpy.sort(values)[min(values.size - 1, int(numpy.ceil(percent / 100 * values.size)) - 1)])
    return value if numpy.isfinite(value) else None


def recovery(
    records: Records, change: float, end: float, budget: float, window: float, stays: float
) -> dict[str, Any]:
    """When, after `change`, nine of ten requests of a window are within the budget again, and stay so.

    A window starts every 50 ms; "stays": so do all windows that start within `stays` seconds from then, or
    until the phase ends. Windows with fewer than five requests say nothing and are passed over.
    """
    step = 0.05
    starts = numpy.arange(change, max(change + step / 2, end - window), step)
    fits = []
    for start in starts:
        latencies = records.latency[records.between(start, start + window)]
        fits.append(None if latencies.size < 5 else bool((latencies <= budget).mean() >= 0.9))
    for index, start in enumerate(starts):
        ahead = fits[index : index + 1 + int(stays / step)]
        if fits[index] and all(fit is not False for fit in ahead):
            return {"seconds": float(start - change), "recovered": True}
    if all(fit is None for fit in fits):
        return {"seconds": None, "recovered": False}
    return {"seconds": float(end - change), "recovered": False}


def switch_times(records: Records, bin_s: float = 0.05) -> list[float]:
    """When the variant that gives most answers changed. Answers that overtake each other are no switch."""
    named = [(done, name) for done, name in zip(records.done, records.variant) if name and numpy.isfinite(done)]
    bins: dict[int, dict[str, int]] = {}
    for done, name in named:
        counts = bins.setdefault(int(done / bin_s), {})
        counts[name] = counts.get(name, 0) + 1
    times, last = [], None
    for slot in sorted(bins):
        most = max(bins[slot], key=lambda name: bins[slot][name])
        if last is not None and most != last:
            times.append(slot * bin_s)
        last = most
    return times


def most_within(times: Sequence[float], span: float) -> int:
    """The most of these that lie within any stretch of so many seconds."""
    return max((sum(1 for other in times if time <= other < time + span) for time in times), default=0)


# --- pressure ---------------------------------------------------------------------------------------------

# Ends with its parent, and waits at the start until it is told to go on.
CHILD = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if hasattr(os, "sched_setaffinity") and sys.argv[2] != "any":
    os.sched_setaffinity(0, {int(sys.argv[2])})
block = bytearray(128 << 20) if sys.argv[1] == "memory" else None
copy = bytearray(128 << 20) if sys.argv[1] == "memory" else None
os.kill(os.getpid(), signal.SIGSTOP)
while True:
    if block is not None:
        memoryview(copy)[:] = block
    else:
        for _ in range(100000):
            pass
"""


@dataclass
class Pressure:
    """Neighbours that want the processor or the memory: started beforehand, woken and stopped by signals."""

    cores: list[int]
    _children: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _awake: set[str] = field(default_factory=set)

    # What each phase wakes.
    KINDS = {
        "idle": (),
        "one busy core": ("cpu0",),
        "two busy cores": ("cpu0", "cpu1"),
        "memory": ("memory",),
        "bursts": (),
    }

    def __enter__(self) -> Pressure:
        for name, kind, core in (
            ("cpu0", "cpu", self.cores[0]),
            ("cpu1", "cpu", self.cores[-1]),
            ("memory", "memory", self.cores[-1]),
        ):
            command = [common.PYTHON, "-c", CHILD, kind, str(core)]
            self._children[name] = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        for name, child in self._children.items():
            while self._state(child) != "T":
                if time.monotonic() > deadline or child.poll() is not None:
                    self.close()
                    raise common.WorkerDied(f"the neighbour '{name}' does not start")
                time.sleep(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @staticmethod
    def _state(child: subprocess.Popen[bytes]) -> str:
        try:
            return Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return ""

    def set(self, phase: str) -> None:
        wanted = set(self.KINDS[phase])
        for name in wanted - self._awake:
            self._children[name].send_signal(signal.SIGCONT)
        for name in self._awake - wanted:
            self._children[name].send_signal(signal.SIGSTOP)
        self._awake = wanted

    def close(self) -> None:
        for child in self._children.values():
            child.kill()
            child.wait()
        self._children.clear()
        self._awake.clear()
