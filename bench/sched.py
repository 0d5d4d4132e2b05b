#!/usr/bin/python3
"""Measures `limber apps`: what sharing one machine among several applications by a schedule brings.

Three parts. `record`: two networks of one family (`whole`, `small`) learn the built-in data; then each is really retrained,
for more or fewer epochs, in each of the built-in shifts, and accuracy before and after, processor time with one thread
and with two, and latency become a profile of each application. `simulate`: 2, 3 and 4 applications, and 64 on a machine
that is as many times larger, over many windows of drifting domains: the optimiser against the best it can do with whole
models, Ekya, uniform shares and no retraining; windows of 0.25 to 2 times what retraining all four fully takes.
`schedule`: seconds that a schedule takes, for 4 applications with 8 sizes and for 64, and how near it is to the best
there can be. The table goes to stdout, progress to stderr, everything to bench/results/sched.json; the profiles to
the work folder, where they are found again. Times are processor time, so that other work does not count.
Exit codes: 0 measured, 1 an engine failed, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any, Sequence

WHOLE, SMALL = "builtin:resnet14", "builtin:resnet8"
KINDS = ("night", "fog", "rain", "blur", "noise", "invert", "texture", "viewpoint")
SHIFTS = tuple(kind + strength for kind in KINDS for strength in ("", "=0.5"))
# How an option is named, which network it trains, for how many epochs, and by which strategy.
OPTIONS = (
    ("whole-last", "whole", 4, "last"),
    ("whole-short", "whole", 4, "full"),
    ("whole-long", "whole", 16, "full"),
    ("small-short", "small", 4, "full"),
    ("small-long", "small", 16, "full"),
)
# Importance, requests by second, accuracy below which it should not fall.
CAMERAS = (("gate", 2, 20, 0.0), ("yard", 1, 40, 0.0), ("dock", 1, 20, 0.5), ("aisle", 1, 10, 0.0))
WINDOWS = (0.25, 0.5, 1.0, 2.0)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Limber:
    def __init__(self, binary: Path) -> None:
        self.binary = binary.resolve()

    def run(self, *words: str) -> tuple[dict[str, Any], float]:
        """What it printed as JSON, and the processor time it took."""
        process = subprocess.Popen(
            [str(self.binary), *words, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout and process.stderr
        out = process.stdout.read()
        problem = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise RuntimeError(f"limber {' '.join(words)}: {problem.strip()}")
        return json.loads(out), usage.ru_utime + usage.ru_stime


class Recorder:
    """Trains for real, and keeps what it found."""

    def __init__(self, limber: Limber, work: Path, images: int, shifts: Sequence[str]) -> None:
        self.limber, self.work, self.images, self.shifts = limber, work, images, shifts

    def pretrain(self, name: str, model: str) -> Path:
        run = self.work / name
        if not (run / "history.jsonl").exists():
            say(f"{model} learns the built-in data")
            count = 20 * self.images
            self.limber.run(
                "train", model, "--data", f"synthetic:count={count},seed=1", "--val", "synthetic:count=200,seed=2",
                "--epochs", "8", "--lr", "0.05", "--schedule", "cosine", "--init", "random", "--tune", "off", "-o", str(run),
            )
        return run

    def judge(self, run: Path, shift: str) -> dict[str, Any]:
        data = f"synthetic:{shift},count={2 * self.images},seed=4"
        return self.limber.run("eval", str(run), "--data", data, "--tune", "off", "--details")[0]

    def accuracy(self, run: Path, shift: str) -> float:
        return float(self.judge(run, shift)["accuracy"])

    @staticmethod
    def features(judged: dict[str, Any]) -> list[float]:
        """What shows without labels: mean confidence, and how evenly classes are claimed."""
        details, images = judged["details"], judged["images"]
        confidence = sum(part["confidence_sum"] for part in details["confidence"]) / images
        claimed = [one["claimed"] / images for one in details["classes"]]
        evenness = -sum(p * math.log(p) for p in claimed if p > 0) / math.log(len(claimed))
        return [round(confidence, 4), round(evenness, 4)]

    def retrain(self, base: Path, run: Path, shift: str, epochs: int, strategy: str, threads: int) -> float:
        """Processor time by thread."""
        data = f"synthetic:{shift},count={self.images},seed=3"
        _, seconds = self.limber.run(
            "train", str(base), "--data", data, "--val", "none", "--epochs", str(epochs), "--strategy", strategy,
            "--threads", str(threads), "--tune", "off", "-o", str(run),
        )
        return seconds / threads

    def option(self, bases: dict[str, Path], option: tuple[str, str, int, str], shift: str) -> tuple[float, list[float]]:
        name, network, epochs, strategy = option
        kept = self.work / f"{name}-{shift}.json"
        if not kept.exists():
            run = self.work / f"{name}-{shift}"
            timed = [1, 2] if shift == self.shifts[0] else [2]
            seconds = []
            for threads in timed:
                subprocess.run(["rm", "-rf", str(run)], check=True)
                seconds.append(self.retrain(bases[network], run, shift, epochs, strategy, threads))
            kept.write_text(json.dumps([self.accuracy(run, shift), seconds]))
            subprocess.run(["rm", "-rf", str(run)], check=True)
        after, seconds = json.loads(kept.read_text())
        say(f"{shift}: {name} ends at {100 * after:.1f} %")
        return after, seconds

    def latency(self, model: str) -> float:
        found, _ = self.limber.run("bench", model, "--threads", "1", "--tune", "off")
        return float(found["p50_s"])

    def profiles(self) -> dict[str, Any]:
        bases = {"whole": self.pretrain("whole", WHOLE), "small": self.pretrain("small", SMALL)}
        latency = {"whole": self.latency(WHOLE), "small": self.latency(SMALL)}
        size = {"whole": 1.0, "small": round(latency["small"] / latency["whole"], 3)}
        options = [
            {"name": name, "size": size[network], "latency_s": latency[network], "seconds": []}
            for name, network, _, _ in OPTIONS
        ]
        domains = []
        for shift in self.shifts:
            judged = {network: self.judge(base, shift) for network, base in bases.items()}
            features = self.features(judged["whole"])
            before = [judged[network]["accuracy"] for _, network, _, _ in OPTIONS]
            domain: dict[str, Any] = {"name": shift, "features": features, "before": before, "after": []}
            for i, option in enumerate(OPTIONS):
                after, seconds = self.option(bases, option, shift)
                domain["after"].append(after)
                if len(seconds) == 2:
                    options[i]["seconds"] = seconds
            domains.append(domain)
        applications = [
            {
                "name": name, "importance": importance, "requests_per_s": rate, "minimum_accuracy": minimum,
                "options": options, "domains": domains,
            }
            for name, importance, rate, minimum in CAMERAS
        ]
        return {
            "format": "limber-app-profiles", "version": 1, "window_s": 0.0, "threads": 2, "applications": applications,
        }


def write_profiles(profiles: dict[str, Any], to: Path, cameras: int, window: float) -> None:
    longest = max(option["seconds"][1] for option in profiles["applications"][0]["options"])
    scaled = dict(profiles, applications=profiles["applications"][:cameras])
    scaled["window_s"] = window * longest * len(CAMERAS)
    to.write_text(json.dumps(scaled, indent=1) + "\n")


def simulate(limber: Limber, work: Path, profiles: dict[str, Any], windows: int, seeds: int) -> list[dict[str, Any]]:
    rows = []
    for window in WINDOWS:
        for cameras, count in ((2, 2), (3, 3), (4, 4), (4, 64)):
            if count == 64 and window not in (0.5, 1.0):
                continue
            file = work / "profiles.json"
            write_profiles(profiles, file, cameras, window)
            found = [
                limber.run(
                    "apps", "simulate", str(file), "--apps", str(count), "--seed", str(seed),
                    "--windows", str(windows if count < 64 else max(2, windows // 5)),
                )[0]
                for seed in range(seeds if count < 64 else 1)
            ]
            by_name = [{p["name"]: p["accuracy"] for p in one["policies"]} for one in found]
            gains = {
                name: [100 * (one["optimised"] - one[name]) for one in by_name] for name in by_name[0] if name != "optimised"
            }
            rows.append(
                {
                    "window": window, "applications": count,
                    "accuracy": statistics.mean(one["optimised"] for one in by_name),
                    "gain": {name: statistics.mean(values) for name, values in gains.items()},
                    "least_gain": {name: min(values) for name, values in gains.items()},
                    "estimate_error_points": 100 * statistics.mean(one["estimate_error"] for one in found),
                    "optimum_share": min(one["optimum_share"] for one in found),
                    "schedule_seconds": max(one["schedule_seconds"] for one in found),
                }
            )
            say(f"window {window}, {count} applications: {rows[-1]['gain']}")
    return rows


def made_up(count: int, sizes: int, seed: int) -> dict[str, Any]:
    draw = random.Random(seed)
    applications = []
    for i in range(count):
        options, before, after = [], [], []
        for j in range(sizes):
            once = draw.uniform(10, 200) * 4 / count
            options.append({"name": str(j), "size": (j + 1) / sizes, "latency_s": 0.01, "seconds": [once, once / draw.uniform(1.2, 2)]})
            before.append(draw.uniform(0.2, 0.8))
            after.append(min(1.0, before[-1] + draw.uniform(0, 0.4)))
        applications.append(
            {
                "name": str(i), "importance": draw.uniform(0.5, 2), "requests_per_s": draw.uniform(1, 40) / count,
                "options": options, "domains": [{"name": "here", "before": before, "after": after}],
            }
        )
    return {"format": "limber-app-profiles", "version": 1, "window_s": 200.0, "threads": 2, "applications": applications}


def schedule(limber: Limber, work: Path, cases: int) -> list[dict[str, Any]]:
    rows = []
    for count, sizes, tried in ((4, 8, cases), (64, 8, max(2, cases // 10))):
        found = []
        for seed in range(tried):
            file = work / "made-up.json"
            file.write_text(json.dumps(made_up(count, sizes, seed)))
            found.append(limber.run("apps", "plan", str(file))[0])
        rows.append(
            {
                "applications": count, "sizes": sizes, "cases": tried, "exact": all(one["exact"] for one in found),
                "median_seconds": statistics.median(one["schedule_seconds"] for one in found),
                "longest_seconds": max(one["schedule_seconds"] for one in found),
                "optimum_share": min(one["optimum_share"] for one in found),
            }
        )
    return rows


def print_tables(simulated: list[dict[str, Any]], scheduled: list[dict[str, Any]]) -> None:
    print("window  applications  accuracy  points over: whole models, ekya, uniform, none (least of the seeds)")
    for row in simulated:
        names = ("optimised, whole models", "ekya", "uniform", "none")
        gains = ", ".join(f"{row['gain'][name]:+.1f} ({row['least_gain'][name]:+.1f})" for name in names)
        print(f"{row['window']:6} {row['applications']:13} {100 * row['accuracy']:8.1f} %  {gains}")
    for row in scheduled:
        print(
            f"{row['applications']} applications, {row['sizes']} sizes: median {row['median_seconds']:.4f} s, longest "
            f"{row['longest_seconds']:.4f} s, at least {100 * row['optimum_share']:.2f} % of the best"
        )


def summary(simulated: list[dict[str, Any]], scheduled: list[dict[str, Any]]) -> dict[str, float]:
    few = [row for row in simulated if row["applications"] < 64]
    return {
        "gain_over_uniform_points": statistics.mean(row["gain"]["uniform"] for row in few),
        "gain_over_ekya_points": statistics.mean(row["gain"]["ekya"] for row in few),
        "least_gain_points": min(min(row["least_gain"]["uniform"], row["least_gain"]["ekya"]) for row in few),
        "estimate_error_points": statistics.mean(row["estimate_error_points"] for row in few),
        "schedule_seconds": scheduled[0]["longest_seconds"],
        "schedule_seconds_64": scheduled[1]["longest_seconds"],
        "optimum_share": min(row["optimum_share"] for row in scheduled),
    }


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limber", type=Path, required=True)
    parser.add_argument("--quick", action="store_true", help="fewer images, shifts and windows")
    parser.add_argument("--profiles", type=Path, help="take these instead of recording")
    parser.add_argument("--work", type=Path, default=Path("build/bench/sched"))
    parser.add_argument("--out", type=Path, default=Path("bench/results/sched.json"))
    options = parser.parse_args(arguments)
    limber = Limber(options.limber)
    work = options.work / ("quick" if options.quick else "full")
    work.mkdir(parents=True, exist_ok=True)
    try:
        if options.profiles:
            profiles = json.loads(options.profiles.read_text())
        else:
            recorder = Recorder(limber, work, 100 if options.quick else 300, KINDS[:4] if options.quick else SHIFTS)
            profiles = recorder.profiles()
            write_profiles(profiles, work / "cameras.json", len(CAMERAS), 0.5)
        simulated = simulate(limber, work, profiles, 10, 3 if options.quick else 10)
        scheduled = schedule(limber, work, 20 if options.quick else 100)
    except (RuntimeError, OSError) as problem:
        say(f"sched: error: {problem}")
        return 1
    print_tables(simulated, scheduled)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    result = {"summary": summary(simulated, scheduled), "simulated": simulated, "scheduled": scheduled, "profiles": profiles}
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
