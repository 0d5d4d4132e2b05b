"""Parts of bench/serve.py that load a server fully: switches, ONNX Runtime beside it, a long time."""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from pathlib import Path
from typing import Any

from peers import common, measure, serving
from peers.serve_model import Bench, elastic_model, image_words, say

numpy = measure.numpy

AROUND = 0.1  # seconds around a switch
MIB = 2**20


# --- switch -----------------------------------------------------------------------------------------------


class Switcher(threading.Thread):
    """Asks the server for another variant, over and over, at a steady pace."""

    def __init__(self, server: serving.Server, variants: list[str], count: int, rate: float) -> None:
        super().__init__(daemon=True)
        self.server, self.variants, self.count, self.rate = server, variants, count, rate
        self.times: list[float] = []  # unix seconds, when each was done
        self.resident: list[int] = []
        self.failed: list[str] = []

    def run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        start = time.time()
        try:
            for index in range(self.count):
                time.sleep(max(0.0, start + index / self.rate - time.time()))
                value = {"model": self.server.model, "variant": self.variants[index % len(self.variants)]}
                connection.request("POST", "/v2/limber/variant", json.dumps(value))
                answer = connection.getresponse()
                body = answer.read()
                self.times.append(time.time())
                if answer.status != 200:
                    self.failed.append(f"status {answer.status}: {body[:200]!r}")
                if index % 100 == 99:
                    self.resident.append(self.server.resident())
        except (OSError, http.client.HTTPException, common.WorkerError) as error:
            self.failed.append(f"after {len(self.times)}: {error}")
        finally:
            connection.close()


def pin(server: serving.Server, variant: str) -> None:
    server.ask("POST", "/v2/limber/variant", {"model": server.model, "variant": variant})


def usable_variants(server: serving.Server, known: list[str]) -> list[str]:
    """Up to three variants that the server can switch to: of those it has warm the slowest, the quickest and one
    between them; of a server that does not say, those that it takes."""
    pool = server.status().get("pool", [])
    warm = sorted((entry for entry in pool if entry["warm"]), key=lambda entry: -entry["latency_s"])
    names = [str(entry["variant"]) for entry in warm] or list(dict.fromkeys(["original", *known]))
    usable = []
    for name in dict.fromkeys([names[0], names[-1], names[len(names) // 2]]):
        try:
            pin(server, name)
            usable.append(name)
        except common.WorkerError as error:
            say(str(error))
    if len(usable) < 2:
        raise common.WorkerError(f"the server can switch between {usable}; expected two variants or more")
    return usable


def steady(bench: Bench, server: serving.Server, variants: list[str], words: list[str]) -> Any:
    """Latencies with each variant in turn, without switches; raises WorkerError when another one answers."""
    file = bench.work / "records-steady.csv"
    parts = []
    for variant in variants:
        pin(server, variant)
        said = bench.load(server, bench.pick(8, 3), *words, records=file)["variants"]
        if said and said.get(variant, 0) < 0.9 * sum(said.values()):
            raise common.WorkerError(f"{server.name} was asked for variant '{variant}' and answers with {said}")
        parts.append(serving.Records.read(file).latency)
    return numpy.concatenate(parts)


def measure_switch(bench: Bench) -> dict[str, Any]:
    elastic = elastic_model(bench)
    count, rate = int(bench.pick(10000, 1000)), float(bench.arguments.switch_rate)
    file = bench.work / "records-switch.csv"
    words = ["--closed", str(2 * len(bench.cores)), *image_words(elastic)]
    # A budget that everything keeps, and no second thoughts: the server itself may switch once, and then waits.
    alone = ("--dwell", "36000s")
    options = serving.ServeOptions(
        str(elastic.folder), bench.threads, bench.workers, 10.0, "feedback", debug=True, more=alone
    )
    with serving.limber_server(bench.limber, options) as server:
        variants = usable_variants(server, elastic.variants)
        pin(server, variants[1])
        time.sleep(4)  # that is when it does
        before = steady(bench, server, variants, words)
        say(f"{count} switches under full load")
        switcher = Switcher(server, variants, count, rate)
        words += ["--seconds", f"{20 * count / rate + 60:g}"]
        run = serving.Load(bench.limber, server, *words, records=file)
        time.sleep(3)
        switcher.start()
        switcher.join(timeout=20 * count / rate + 30)
        time.sleep(0.5)
        run.interrupt()
        result = run.result(60)
        after = steady(bench, server, variants, words[:-2])
    return {
        "variants": variants,
        "failed_switches": switcher.failed[:10],
        **judge_switches(serving.Records.read(file), switcher, result, numpy.concatenate([before, after])),
    }


def judge_switches(
    records: serving.Records, switcher: Switcher, result: dict[str, Any], steady_s: Any
) -> dict[str, Any]:
    """How requests within AROUND of a switch fared against `steady_s`, latencies without any."""
    times = numpy.array(switcher.times) - result["started_unix"]
    if switcher.failed:
        say(f"{len(switcher.failed)} switches failed: {switcher.failed[0]}")
    if times.size < 2:
        raise common.WorkerError(f"no switches were made: {switcher.failed[:1]}")
    # The first switch that ends after a request was due, less what it may lie behind its end.
    end = numpy.where(numpy.isfinite(records.done), records.done, records.due)
    following = numpy.searchsorted(times, records.due - AROUND)
    near = (following < times.size) & (times[numpy.minimum(following, times.size - 1)] <= end + AROUND)
    around = records.latency[near]
    thousand = min(1000, times.size // 3)
    first = records.latency[records.between(times[0], times[thousand])]
    last = records.latency[records.between(times[-1 - thousand], times[-1])]
    held = switcher.resident
    tenth = max(1, len(held) // 10)
    p99 = [serving.percentile(values, 99) for values in (steady_s, around, first, last)]
    return {
        "switches": int(times.size),
        "switches_per_second": float((times.size - 1) / (times[-1] - times[0])),
        "requests": result["requests"],
        "lost": result["lost"] + result["refused"] + result["unsent"],
        "problems": result["problems"],
        "steady_p99_s": p99[0],
        "around_p99_s": p99[1],
        "p99_ratio": p99[1] / p99[0] if p99[0] and p99[1] else None,
        "first_thousand_p99_s": p99[2],
        "last_thousand_p99_s": p99[3],
        "resident_first_bytes": int(numpy.median(held[:tenth])) if held else None,
        "resident_last_bytes": int(numpy.median(held[-tenth:])) if held else None,
    }


# --- peer -------------------------------------------------------------------------------------------------


def measure_peer(bench: Bench) -> dict[str, Any]:
    onnx = elastic_model(bench).onnx
    threads = bench.arguments.peer_threads or ([2] if bench.quick else [1, 2])
    return {"model": onnx.name, "cases": [peer_case(bench, onnx, count) for count in threads]}


def peer_case(bench: Bench, onnx: Path, threads: int) -> dict[str, Any]:
    """Throughput at saturation and p99 at an equal rate, in turns in a shuffled order."""
    rounds = int(bench.pick(5, 2))
    order = random.Random(threads)
    # As many threads in all: one for each request under way, as the server does by itself.
    options = serving.ServeOptions(str(onnx), 1, threads)
    with serving.node_server(onnx, threads) as ort, serving.limber_server(bench.limber, options) as limber:
        servers = {"limber": limber, "ort": ort}
        for server in servers.values():
            bench.load(server, 2, "--closed", "4")
        agree = answers_agree(bench, servers)

        def turns(seconds: float, *words: str) -> dict[str, list[dict[str, Any]]]:
            results: dict[str, list[dict[str, Any]]] = {name: [] for name in servers}
            for _ in range(rounds):
                for name in order.sample(list(servers), len(servers)):
                    results[name].append(bench.load(servers[name], seconds, *words))
            return results

        full = turns(bench.pick(6, 3), "--closed", str(bench.arguments.callers))
        throughput = {name: float(numpy.median([r["throughput"] for r in runs])) for name, runs in full.items()}
        rate = 0.6 * min(throughput.values())
        equal = turns(bench.pick(10, 4), "--rate", f"{rate:.2f}")
        tails = {name: [r["latency_s"]["p99"] for r in runs] for name, runs in equal.items()}
        p99 = {name: float(numpy.median(values)) for name, values in tails.items()}
        lost = sum(r["lost"] + r["refused"] for runs in (*full.values(), *equal.values()) for r in runs)
    say(f"{threads} threads: limber {throughput['limber']:.0f}/s, onnxruntime-node {throughput['ort']:.0f}/s")
    return {
        "threads": threads,
        "same_class_share": agree,
        "throughput": throughput,
        "throughput_ratio": throughput["limber"] / throughput["ort"],
        "rate": rate,
        "p99_s": p99,
        "p99_ratio": p99["limber"] / p99["ort"],
        "lost": lost,
        "turns": {
            name: {"throughput": [r["throughput"] for r in full[name]], "p99_s": tails[name]}
            for name in servers
        },
    }


def answers_agree(bench: Bench, servers: dict[str, serving.Server]) -> float:
    """The share of requests to which both say the same class; raises WorkerError below 99 %."""
    said = []
    for name, server in servers.items():
        file = bench.work / f"records-{name}.csv"
        bench.load(server, 2, "--rate", "50", "--arrivals", "constant", records=file)
        said.append(serving.Records.read(file).predicted)
    share = float((said[0] == said[1]).mean()) if said[0].shape == said[1].shape else 0.0
    if share < 0.99:
        raise common.WorkerError(f"the two servers agree on {share:.1%} of requests; expected the same answers")
    return share


# --- soak -------------------------------------------------------------------------------------------------


def measure_soak(bench: Bench) -> dict[str, Any]:
    """Requests at full speed, broken ones among them, until there were enough; memory after each slice."""
    wanted = int(bench.arguments.soak or bench.pick(2_000_000, 20_000))
    options = serving.ServeOptions(bench.arguments.soak_model, bench.threads, bench.workers)
    totals = {key: 0 for key in ("requests", "good", "lost", "refused", "malformed", "malformed_refused")}
    resident, taken, start = [], {}, time.monotonic()
    with serving.limber_server(bench.limber, options) as server:
        while totals["requests"] + totals["malformed"] < wanted:
            if time.monotonic() - start > bench.arguments.soak_seconds:
                break
            words = ["--closed", "16", "--malformed", "0.05", "--seed", str(len(resident))]
            result = bench.load(server, bench.pick(10, 2), *words)
            for key in totals:
                totals[key] += result[key]
            for kind, count in result["malformed_taken"].items():
                taken[kind] = taken.get(kind, 0) + count
            resident.append(server.resident())
            if result["good"] == 0:
                raise common.WorkerError(f"soak: nothing is answered any more: {result['problems']}")
        say(f"soak: {totals['requests'] + totals['malformed']} requests, {resident[-1] / MIB:.0f} MiB")
    warm = max(1, len(resident) // 5)
    part = max(1, (len(resident) - warm) // 5)
    first = float(numpy.median(resident[warm : warm + part] or resident))
    last = float(numpy.median(resident[-part:]))
    return {
        **totals,
        "wanted": wanted,
        "malformed_taken": taken,
        "resident_bytes": resident,
        "resident_growth": last / first - 1,
        "seconds": time.monotonic() - start,
    }
