#!/usr/bin/python3
"""Measures `limber serve`: does it stay inside its budget while the machine gets busy, and what does that cost?

Five parts. `lookup`: the chooser over 10,000 variants, by build/PRESET/bench/serve_lookup. `load`: a script of
idle and busy phases (one busy core, two, memory, bursts) under which a fixed model, an AdaptiveNet-like reactive
pool, Limber's loop without a forecast and with it serve the same requests, one after the other. `switch`: 10,000
switches under full load. `peer`: ONNX Runtime behind a Node HTTP server against limber with one fixed model, in
turns. `soak`: two million requests, broken ones among them. The elastic model is made once and kept in the work
folder. All runs on --cores cores. The table goes to stdout, progress to stderr, everything to
bench/results/serve.json.
Exit codes: 0 measured, 1 a server failed or --require does not hold, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from peers import common, measure, serve_stress, serving  # noqa: E402
from peers.serve_model import Bench, Elastic, elastic_model, image_words, say  # noqa: E402

numpy = measure.numpy

PARTS = ("lookup", "load", "switch", "peer", "soak")
POLICIES = ("fixed", "reactive", "feedback", "forecast")
# The script: what the machine has to bear, and for how many seconds.
PHASES = (
    ("idle", 10),
    ("one busy core", 20),
    ("idle", 10),
    ("two busy cores", 20),
    ("idle", 10),
    ("memory", 20),
    ("idle", 10),
    ("bursts", 20),
    ("idle", 10),
)
BUSY = ("one busy core", "two busy cores", "memory", "bursts")
WINDOW = 0.25  # seconds whose 90th percentile must be within the budget
STAYS = 2.0  # seconds for which it must stay there to count as recovered
# What --require asks for: (key of the summary, "<=" or ">=", limit).
LIMITS = (
    ("lookup_p99_us", "<=", 2.0),
    ("lost_requests", "<=", 0),
    ("switch_p99_ratio", "<=", 1.2),
    ("deadline_miss_share", "<=", 0.05),
    ("deadline_miss_share_fixed", ">=", 0.5),
    ("mean_latency_ratio_busy", "<=", 0.5),
    ("accuracy_drop_points", "<=", 5.0),
    ("recovery_seconds_worst", "<=", 1.0),
    ("throughput_ratio_to_ort_node", ">=", 1.3),
    ("p99_ratio_to_ort_node", "<=", 0.8),
)


# --- lookup -----------------------------------------------------------------------------------------------


def measure_lookup(bench: Bench) -> dict[str, Any]:
    """Runs the chooser's own bench, which prints JSON with p50_us, p99_us, max_us, variants and queries."""
    binary = bench.limber.parent / "bench" / "serve_lookup"
    if not binary.exists():
        raise common.UsageError(f"{binary} is not built")
    done = subprocess.run([str(binary)], capture_output=True, text=True, check=False, timeout=300)
    if done.returncode != 0:
        raise common.WorkerError(f"serve_lookup failed: {common.tail(done.stderr)}")
    return dict(common.read_json(done.stdout, "serve_lookup"))


# --- load -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    """The same for all policies."""

    rate: float
    budget_s: float
    idle: dict[str, Any]
    idle_within: float  # share of requests that the fixed model answers within the budget, idle


def find_setting(bench: Bench, elastic: Elastic) -> Setting:
    """Rate and budget by what the fixed model does on the idle machine."""
    options = serving.ServeOptions(str(elastic.folder), bench.threads, bench.workers, 10.0, "fixed")
    with serving.limber_server(bench.limber, options) as server:
        # So many callers that no worker ever waits for one.
        callers = ("--closed", str(4 * bench.workers), *image_words(elastic))
        bench.load(server, 2, *callers)
        full = bench.load(server, bench.pick(5, 3), *callers)
        rate = min(float(bench.arguments.rate_limit), bench.arguments.utilisation * full["throughput"])
        file = bench.work / "records-idle.csv"
        words = ["--rate", f"{rate:.1f}", *image_words(elastic)]
        idle = serving.load(bench.limber, server, bench.pick(15, 6), *words, records=file, first=True)
    p90 = idle["latency_s"]["p90"]
    budget = bench.arguments.budget_factor * p90
    within = float((serving.Records.read(file).latency <= budget).mean())
    say(f"fixed, idle: {full['throughput']:.0f}/s at most; at {rate:.0f}/s p90 {p90 * 1e3:.2f} ms")
    return Setting(rate, budget, idle, within)


def scaled_phases(bench: Bench) -> list[tuple[str, float]]:
    return [(name, seconds * bench.pick(1, 0.2)) for name, seconds in PHASES]


def rate_words(phases: list[tuple[str, float]], rate: float) -> str:
    """The rates of the script: the same throughout, but three times as many now and then in `bursts`."""
    parts = []
    for name, seconds in phases:
        if name != "bursts":
            parts.append(f"{rate:.2f}:{seconds:g}")
            continue
        pairs = max(1, round(seconds / 2))
        parts += [f"{3 * rate:.2f}:0.5", f"{rate / 3:.2f}:{seconds / pairs - 0.5:g}"] * pairs
    return ",".join(parts)


def play(
    bench: Bench, elastic: Elastic, setting: Setting, policy: str, pressure: serving.Pressure
) -> dict[str, Any]:
    """One policy under the whole script."""
    options = serving.ServeOptions(str(elastic.folder), bench.threads, bench.workers, setting.budget_s, policy)
    phases = scaled_phases(bench)
    records = bench.work / f"records-{policy}.csv"
    words = [*image_words(elastic), "--deadline", f"{setting.budget_s * 1e3:.4f}ms", "--timeout", "keep"]
    with serving.limber_server(bench.limber, options) as server:
        warm = serving.Load(bench.limber, server, "--rate", f"{setting.rate:.1f}", "--seconds", "2", *words)
        lead = warm.result(60)["started_unix"] - warm.called  # until it has read its images
        words += ["--phases", rate_words(phases, setting.rate)]
        run = serving.Load(bench.limber, server, *words, records=records, first=True)
        priority, changes = run.priority(), []
        try:
            at = run.called + lead
            for name, seconds in phases:
                time.sleep(max(0.0, at - time.time()))
                pressure.set(name)
                changes.append((name, time.time()))
                at += seconds
            result = run.result(phases[-1][1] + serving.LOAD_EXTRA)
        finally:
            pressure.set("idle")
            run.kill()
        resident, switched = server.resident(), server.status().get("switches", [])
    start = result["started_unix"]
    marks = [(name, max(0.0, when - start)) for name, when in changes]
    marks[0] = (marks[0][0], 0.0)
    judged = judge_policy(serving.Records.read(records), marks, result["timeline"], setting)
    keys = ("requests", "lost", "unsent", "refused", "missed_share", "accuracy", "variants", "statuses")
    keys += ("sent_after_due_s",)
    counts = {key: result.get(key) for key in keys}
    told = {"load_priority": priority, "resident_bytes": resident, "server_switches": switched}
    return {"policy": policy, **counts, **told, **judged}


def judge_policy(
    records: serving.Records, marks: list[tuple[str, float]], timeline: Any, setting: Setting
) -> dict[str, Any]:
    """What became of the requests; `marks`: each phase and when it began."""
    end = float(records.due[-1]) + 1e-6
    spans = [(name, at, following[1]) for (name, at), following in zip(marks, [*marks[1:], ("", end)])]
    phases, busy = [], numpy.zeros(records.due.shape, dtype=bool)
    for index, (name, start, stop) in enumerate(spans):
        inside = records.between(start, stop)
        busy |= inside & (name in BUSY)
        latency, right = records.latency[inside], records.right[inside]
        phase = {"phase": name, "start_s": start, "requests": int(inside.sum())}
        phase["missed_share"] = float((latency > setting.budget_s).mean()) if latency.size else None
        phase["mean_s"], phase["p90_s"] = serving.mean_of(latency), serving.percentile(latency, 90)
        phase["accuracy"] = float((right[right >= 0]).mean()) if (right >= 0).any() else None
        if index > 0:  # bursts are a change of their own only where they begin
            phase["recovery"] = serving.recovery(records, start, stop, setting.budget_s, WINDOW, STAYS)
        phases.append(phase)
    latency = records.latency[busy]
    times = serving.switch_times(records)
    return {
        "phases": phases,
        "busy_missed_share": float((latency > setting.budget_s).mean()),
        "busy_mean_s": serving.mean_of(latency),
        "busy_unanswered": int((~numpy.isfinite(latency)).sum()),
        "switches": len(times),
        "switch_times_s": times,
        "timeline": timeline,
        "right": [int(value) for value in records.right],
    }


def accuracy_drop(fixed: dict[str, Any], other: dict[str, Any]) -> float | None:
    """Points of accuracy that `other` loses on the requests that both answered."""
    count = min(len(fixed["right"]), len(other["right"]))
    a, b = numpy.array(fixed["right"][:count]), numpy.array(other["right"][:count])
    both = (a >= 0) & (b >= 0)
    return float(100 * (a[both].mean() - b[both].mean())) if both.any() else None


def worst_recovery(result: dict[str, Any]) -> float | None:
    seconds = [phase["recovery"]["seconds"] for phase in result["phases"] if "recovery" in phase]
    known = [value for value in seconds if value is not None]
    return max(known) if known else None


def measure_load(bench: Bench) -> dict[str, Any]:
    elastic = elastic_model(bench)
    setting = find_setting(bench, elastic)
    results = {}
    with serving.Pressure(bench.cores) as pressure:
        for policy in bench.arguments.policies.split(","):
            say(f"{policy}: the script")
            results[policy] = play(bench, elastic, setting, policy, pressure)
    for result in results.values():
        result["recovery_seconds_worst"] = worst_recovery(result)
        # The server knows best; answers of variants that stand in for the active one are no switches.
        times = [entry["time"] for entry in result["server_switches"]] or result["switch_times_s"]
        result["switches_per_dwell"] = serving.most_within(times, 0.99 * bench.arguments.dwell)
        if "fixed" in results:
            fixed = results["fixed"]
            result["accuracy_drop_points"] = accuracy_drop(fixed, result)
            means = result["busy_mean_s"], fixed["busy_mean_s"]
            result["mean_latency_ratio_busy"] = means[0] / means[1] if all(means) else None
    for result in results.values():
        del result["right"]
    return {
        "model": elastic.folder.name,
        "rate": setting.rate,
        "budget_s": setting.budget_s,
        "idle_fixed": {key: setting.idle[key] for key in ("latency_s", "requests", "throughput")},
        "idle_within_budget": setting.idle_within,
        "dwell_s": bench.arguments.dwell,
        "policies": results,
    }


# --- report -----------------------------------------------------------------------------------------------


def summarize(parts: dict[str, Any]) -> dict[str, Any]:
    """The figures that are promised; None: not measured."""
    load = parts.get("load", {}).get("policies", {})
    loop, fixed = load.get("feedback", {}), load.get("fixed", {})
    switch, soak = parts.get("switch", {}), parts.get("soak", {})
    cases = parts.get("peer", {}).get("cases", [])
    counted = [part["lost"] for part in (switch, loop, soak) if "lost" in part]
    return {
        "lookup_p99_us": parts.get("lookup", {}).get("p99_us"),
        "lost_requests": sum(counted) if counted else None,
        "switch_p99_ratio": switch.get("p99_ratio"),
        "deadline_miss_share": loop.get("missed_share"),
        "deadline_miss_share_fixed": fixed.get("busy_missed_share"),
        "mean_latency_ratio_busy": loop.get("mean_latency_ratio_busy"),
        "accuracy_drop_points": loop.get("accuracy_drop_points"),
        "recovery_seconds_worst": loop.get("recovery_seconds_worst"),
        "switches_per_dwell": loop.get("switches_per_dwell"),
        "deadline_miss_share_forecast": load.get("forecast", {}).get("missed_share"),
        "deadline_miss_share_reactive": load.get("reactive", {}).get("missed_share"),
        "throughput_ratio_to_ort_node": min((case["throughput_ratio"] for case in cases), default=None),
        "p99_ratio_to_ort_node": max((case["p99_ratio"] for case in cases), default=None),
        "soak_requests": soak.get("requests"),
        "soak_resident_growth": soak.get("resident_growth"),
        "malformed_not_refused": soak["malformed"] - soak["malformed_refused"] if soak else None,
    }


def print_load(load: dict[str, Any]) -> None:
    print(f"{load['model']} at {load['rate']:.0f}/s, budget {load['budget_s'] * 1e3:.2f} ms")
    titles = f"{'mean, busy':>11} {'accuracy':>9} {'recovery':>9} {'switches':>9}"
    print(f"{'policy':<10} {'missed':>8} {'busy':>8} {titles}")
    for name, result in load["policies"].items():
        mean = f"{result['busy_mean_s'] * 1e3:.2f} ms" if result["busy_mean_s"] else "-"
        accuracy = f"{result['accuracy']:.2%}" if result.get("accuracy") is not None else "-"
        worst = result["recovery_seconds_worst"]
        back = "-" if worst is None else f"{worst:.2f} s"
        shares = f"{result['missed_share']:>8.2%} {result['busy_missed_share']:>8.2%}"
        print(f"{name:<10} {shares} {mean:>11} {accuracy:>9} {back:>9} {result['switches']:>9}")
        for phase in result["phases"]:
            share = "-" if phase["missed_share"] is None else f"{phase['missed_share']:.1%}"
            tail = "-" if phase["p90_s"] is None else f"{phase['p90_s'] * 1e3:.2f} ms"
            seconds = phase.get("recovery", {}).get("seconds")
            back = "" if seconds is None else f", back after {seconds:.2f} s"
            print(f"    {phase['phase']:<16} missed {share:>7}, p90 {tail:>10}{back}")


def broken_limits(summary: dict[str, Any]) -> list[str]:
    """What --require finds wanting."""
    broken = []
    for key, relation, limit in LIMITS:
        value = summary[key]
        holds = value is not None and (value <= limit if relation == "<=" else value >= limit)
        if not holds:
            broken.append(f"{key} is {value}, should be {relation} {limit}")
    return broken


def parse_arguments() -> argparse.Namespace:
    parser = common.make_parser(__doc__)
    add = parser.add_argument
    add("--limber", type=Path, default=common.LIMBER, help="default: the release build")
    add("--quick", action="store_true", help="phases of a fifth, fewer of all; under 6 minutes")
    add("--parts", default="", help=f"of {','.join(PARTS)}; default all")
    add("--policies", default=",".join(POLICIES), help="default: all")
    add("--model", type=Path, help="elastic model to serve; default: one is made")
    add("--data", help="images it is judged by, with --model")
    add("--work", type=Path, default=common.ROOT / "build" / "bench-serve", help="where models are kept")
    add("--cores", type=int, default=2, help="that everything runs on; default 2")
    add("--threads", type=int, default=1, help="of each of a server's workers; default 1, as the server's")
    add("--workers", type=int, default=2, help="of a server; default 2: one for each core")
    add("--peer-threads", type=common.number_list, help="in all, of either server; default 1,2; with --quick 2")
    add("--callers", type=int, default=8, help="at saturation; default 8")
    add("--utilisation", type=float, default=0.6, help="of the fixed model, idle; default 0.6")
    add("--rate-limit", type=float, default=2000, help="requests a second at most in `load`; default 2000")
    add("--budget-factor", type=float, default=1.1, help="budget by the fixed model's idle p90; default 1.1")
    add("--dwell", type=float, default=0.4, help="least seconds between two switches of the server; default 0.4")
    add("--switch-rate", type=float, default=100, help="switches a second; default 100")
    add("--soak", type=int, help="requests of the soak")
    add("--soak-model", default="builtin:resnet8", help="default builtin:resnet8")
    add("--soak-seconds", type=float, default=3600, help="at most; default 3600")
    add("--require", action="store_true", help="exit code 1 unless the summary keeps what is promised")
    add("--output", type=Path, help="JSON file (default: serve.json in bench/results)")
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    bench = Bench(arguments)
    load_before = measure.load_before()
    chosen = common.select(PARTS, arguments.parts, lambda name: name)
    common.select(POLICIES, arguments.policies, lambda name: name)
    measures = {
        "lookup": measure_lookup,
        "load": measure_load,
        "switch": serve_stress.measure_switch,
        "peer": serve_stress.measure_peer,
        "soak": serve_stress.measure_soak,
    }
    parts: dict[str, Any] = {}
    failed: dict[str, str] = {}
    for name in chosen:
        start = time.monotonic()
        try:
            parts[name] = measures[name](bench)
        except (common.UsageError, common.WorkerError) as error:
            failed[name] = str(error)
            say(f"{name}: {error}")
        say(f"{name}: {time.monotonic() - start:.0f} s")
    summary = summarize(parts)
    if "load" in parts:
        print_load(parts["load"])
    for key, value in summary.items():
        print(f"{key:<32} {'not measured' if value is None else f'{value:.4g}'}")
    machine = measure.host(bench.limber, load_before)
    machine |= {"cores_used": len(bench.cores), "threads": arguments.threads}
    results = {"machine": machine, "quick": arguments.quick, "summary": summary, "failed": failed, **parts}
    measure.write_results(results, arguments.output or measure.RESULTS / "serve.json")
    broken = broken_limits(summary) if arguments.require else []
    for text in broken:
        print(f"not kept: {text}")
    return int(bool(failed) or bool(broken))


if __name__ == "__main__":
    common.run_main(main)
