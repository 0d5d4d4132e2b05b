#!/usr/bin/python3
"""Measures `limber adapt`: what following a drifting world without labels brings, and what it costs.

Six parts. `master`: a network with gates, made from a pretrained one; what it loses with all filters on, and what it
keeps with few of them, against as many by the size of weights. `domains`: many domains in a row, a hundred unlabelled
images of each, scored on others: a surrogate cut from the master, against methods on a network of its size that was
trained on the source as long as the master was, on one from which as many operations were taken without training, and on the whole network.
`writeback`: domains that come again, with and without what was learnt going back into the master. `guard`: long
streams (domains that repeat, sorted classes, noise, nothing at all) with and without the guard, frame by frame against the model
as it came. `drift`: changes found, and false alarms where nothing changes. `serve`: latency of requests while the
server adapts, by that of one that does not, in turns. Masters and trained networks are kept in the work folder. Models
and data that are not there are left out. The table goes to stdout, progress to stderr, everything to bench/results/adapt.json.
Exit codes: 0 measured, 1 an engine failed, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Sequence

sys.path.insert(0, str(Path(__file__).resolve().parent))

from peers import adapting, common, measure  # noqa: E402
from peers.adapting import Run, say  # noqa: E402

PARTS = ("master", "domains", "writeback", "guard", "drift", "serve")
FAMILIES = (
    "gaussian-noise shot-noise impulse-noise defocus-blur glass-blur motion-blur zoom-blur snow frost fog "
    "brightness contrast elastic pixelate jpeg"
).split()
LEARNT = 100  # images of each domain that are learnt from
# Methods that work on a network of a given size. `none` is the network as it was trained on the source.
METHODS = ("none", "bn", "onda", "tent", "shot-im", "shot", "align")
ONCE = ("--window", str(LEARNT), "--borders-known", "--no-guard")
SPAN = 5000  # frames over which adapting must not lose


@dataclass(frozen=True)
class World:
    """A model, the source it knows, and a stream of domains that it does not."""

    name: str
    model: str  # in ../shared/models
    source: str  # data to train on, below the data folder
    stream: str  # {images} is how many frames each visit has
    data: str  # settings of the stream
    augmentation: tuple[str, ...] = ("--flip", "0.5", "--padding", "4")
    source_images: int = 2000  # that say what is normal
    trained: bool = True  # on the source; else it is first, for a fifth of the time that masters are made in


WORLDS = (
    World(
        "corruptions",
        "resnet20-cifar10",
        "cifar10",
        ",".join(f"{family}@{strength}*{{frames}}" for strength in (3, 5) for family in FAMILIES),
        "data={data}/cifar10",
    ),
    World(
        "digits",
        "resnet20-svhn",
        "digits/svhn",
        "mnist*{frames},usps*{frames}",
        "data={data}/digits/svhn;data.mnist=idx:{data}/digits/mnist;data.usps=idx:{data}/digits/usps;rounds=5",
        ("--padding", "4"),
    ),
    World(
        "pacs",
        "mobilenetv2-tiny",
        "pacs-96/photo",
        "art*{frames},cartoon*{frames},sketch*{frames}",
        "data={data}/pacs-96/photo;data.art={data}/pacs-96/art_painting;data.cartoon={data}/pacs-96/cartoon;"
        "data.sketch={data}/pacs-96/sketch;rounds=3",
        ("--flip", "0.5", "--padding", "8"),
        source_images=500,
        trained=False,
    ),
)


class Bench:
    """What the parts share: the engine, the data, and what was made before."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.limber = common.limber_binary(arguments.limber)
        self.work: Path = arguments.work
        self.work.mkdir(parents=True, exist_ok=True)
        self.quick: bool = arguments.quick
        self.seconds = arguments.budget or (60.0 if self.quick else 1500.0)

    def follow(self, model: Path, stream: str, strategy: str, *words: str) -> Run:
        """Runs one stream."""
        pixels = [] if model.is_dir() else adapting.PIXELS
        command = [str(self.limber), "adapt", str(model), *pixels, "--stream", stream, "--strategy", strategy]
        return adapting.run([*command, "--threads", str(self.arguments.threads), "--json", *words])

    def made(self, name: str, make: Callable[[Path], None]) -> Path:
        """Returns what `make` wrote the first time."""
        path = self.work / name
        done = self.work / f"{name}.done"
        if not done.exists():
            if path.is_dir():
                shutil.rmtree(path)
            say(f"making {name}")
            make(path)
            done.touch()
        return path

    def training(self, world: World) -> list[str]:
        """Returns what both kinds of training say of images."""
        return ["--data", str(adapting.DATA / world.source), *adapting.PIXELS, *world.augmentation]

    def trained(self, name: str, start: Path, seconds: float, *words: str) -> Path:
        """Returns a network that all of `start` was trained into for so long."""
        run = self.work / f"{name}-run"

        def train(path: Path) -> None:
            shutil.rmtree(run, ignore_errors=True)
            how = ["--batch", "128", "--time", f"{seconds:.0f}s", "--strategy", "full", *words]
            how += ["--threads", str(self.arguments.threads), "-o", str(run)]
            adapting.call([str(self.limber), "train", str(start), *how])
            adapting.call([str(self.limber), "export", str(run), "-o", str(path)])

        return self.made(f"{name}-{seconds:.0f}s.onnx", train)

    def start(self, world: World) -> Path:
        """Returns the network that knows the source."""
        model = adapting.model(world.model)
        if world.trained:
            return model
        return self.trained(f"{world.name}-start", model, self.seconds / 5, *self.training(world), "--lr", "0.01")

    def master(self, world: World) -> Path:
        words = self.training(world)
        words += ["--batch", "64", "--budget", f"{self.seconds:.0f}s", "--threads", str(self.arguments.threads)]
        return self.made(
            f"master-{world.name}-{self.seconds:.0f}s",
            lambda path: adapting.call(
                [str(self.limber), "elastify", str(self.start(world)), "--gates", *words, "-o", str(path)]
            ),
        )

    def pruned(self, world: World) -> Path:
        """Returns the network with its largest channels, as many as leave it the surrogate's operations; not trained."""
        size = f"{self.arguments.size:.0%}"
        return self.made(
            f"pruned-{world.name}-{size[:-1]}.onnx",
            lambda path: adapting.call(
                [str(self.limber), "export", str(self.start(world)), "--operations", size, "-o", str(path)]
            ),
        )

    def small(self, world: World) -> Path:
        """Returns the same, trained on the source for as long as the master was."""
        words = [*self.training(world), "--lr", "0.05"]
        return self.trained(f"small-{world.name}-{self.arguments.size:.0%}"[:-1], self.pruned(world), self.seconds, *words)

    def stream(self, world: World, frames: int) -> str:
        text = world.stream.format(frames=frames) + ";" + world.data.format(data=adapting.DATA)
        return text + f";seed={self.arguments.seed}"


# --- domains ------------------------------------------------------------------------------------------------


def scored(run: Run, frames: int) -> dict[str, Any]:
    """Accuracy over the frames of each visit that nothing was learnt from: those behind the first LEARNT."""
    visits = [0.0] * (run.frames // frames)
    for window in run.windows:
        if window["scored"]:
            visits[window["first"] // frames] += window["accuracy"] * window["frames"] / (frames - LEARNT)
    inference = run.result["inference"]
    return {
        "accuracy": statistics.mean(visits),
        "visits": visits,
        "seconds_each": run.result["seconds"]["learning"] / len(visits),
        "inference_us": 1e6 * inference.get("adapted_s", inference["original_s"]),
        "memory_mb": run.memory / 1e6,
    }


def measure_domains(bench: Bench, world: World) -> dict[str, Any]:
    # Disjoint: of the ten thousand test images none is shown twice.
    frames = 200 if bench.quick else 250
    stream = bench.stream(world, frames)
    size = f"{bench.arguments.size:.0%}"
    rows: dict[str, Any] = {}
    once = [*ONCE, "--source-images", str(world.source_images)]

    def row(kind: str, model: Path, method: str, *words: str) -> None:
        rows[f"{kind}/{method}"] = result = scored(bench.follow(model, stream, method, *once, *words), frames)
        say(f"{world.name}, {kind}, {method}: {result['accuracy']:.1%}, {result['seconds_each']:.2f} s each")

    row("surrogate", bench.master(world), "surrogate", "--operations", size)
    for method in METHODS:
        row("small", bench.small(world), method)
    for method in ("bn", "tent", "shot-im"):
        row("pruned", bench.pruned(world), method)
    for method in ("none", "bn", "tent", "shot-im", *(() if bench.quick else ("shot",))):
        row("large", bench.start(world), method)
    return {"frames": frames, "rows": rows, **compare_rows(rows)}


def compare_rows(rows: dict[str, Any]) -> dict[str, Any]:
    """The surrogate against the best of each kind, and against SHOT at its size."""
    ours = rows["surrogate/surrogate"]

    def best(kind: str) -> dict[str, Any]:
        return max((row for name, row in rows.items() if name.startswith(kind)), key=lambda row: row["accuracy"])

    large = best("large")
    return {
        "accuracy_gain_same_size_points": 100 * (ours["accuracy"] - best("small")["accuracy"]),
        "accuracy_gain_pruned_points": 100 * (ours["accuracy"] - best("pruned")["accuracy"]),
        "accuracy_to_large_points": 100 * (ours["accuracy"] - large["accuracy"]),
        "time_ratio_to_shot": rows["small/shot-im"]["seconds_each"] / ours["seconds_each"],
        "time_ratio_to_large": large["seconds_each"] / ours["seconds_each"],
        "memory_ratio": ours["memory_mb"] / rows["small/shot-im"]["memory_mb"],
        "memory_ratio_to_large": ours["memory_mb"] / large["memory_mb"],
        "inference_speedup": large["inference_us"] / ours["inference_us"],
    }


# --- write-back ---------------------------------------------------------------------------------------------


def measure_writeback(bench: Bench, world: World) -> dict[str, Any]:
    """Six domains, three times each: the second and third visit, and in the end the source."""
    frames, domains, rounds = 200, FAMILIES[:3] + FAMILIES[6:9], 3
    visits = ",".join(f"{family}@5*{frames}" for family in domains)
    stream = f"{visits};data={adapting.DATA}/cifar10;rounds={rounds};seed={bench.arguments.seed}"
    words = [*ONCE, "--operations", f"{bench.arguments.size:.0%}"]
    later = len(domains)
    result: dict[str, Any] = {}
    for name, more in (("with", ()), ("without", ("--no-write-back",))):
        visits = scored(bench.follow(bench.master(world), stream, "surrogate", *words, *more), frames)["visits"]
        result[name] = {"first": statistics.mean(visits[:later]), "later": statistics.mean(visits[later:])}
        say(f"write-back, {name}: {result[name]['first']:.1%}, later {result[name]['later']:.1%}")
    result["gain_points"] = 100 * (result["with"]["later"] - result["without"]["later"])
    return result


# --- guard --------------------------------------------------------------------------------------------------


def guard_streams(frames: int, data: str) -> dict[str, str]:
    """Returns spellings of streams with so many frames, or a few more, each."""
    eight = FAMILIES[::2]
    each = frames // (2 * len(eight))
    repeating = ",".join(f"{family}@4*{each // 4}" for family in eight)
    return {
        "repeating": f"clean*{each // 4},{repeating};data={data};rounds=8;order=shuffled",
        "sorted": f"clean*{2 * each},{','.join(f'{family}@4*{2 * each}' for family in eight)};data={data};classes=sorted",
        "noise": f"clean*{frames // 8},noise*{frames // 4},clean*{frames // 8};data={data};rounds=2",
        "nothing": f"clean*{frames};data={data}",
    }


def measure_guard(bench: Bench) -> dict[str, Any]:
    data = str(adapting.DATA / "cifar10")
    frames = 6000 if bench.quick else 100_000
    result: dict[str, Any] = {}
    for name, stream in guard_streams(frames, data).items():
        for method in ("bn", "tent"):
            for guard, words in (("guarded", ()), ("alone", ("--no-guard",))):
                run = bench.follow(adapting.model("resnet20-cifar10"), stream, method, *words)
                summary = run.summary
                result[f"{name}/{method}/{guard}"] = one = {
                    "gain_points": 100 * (summary["accuracy"] - summary["frozen_accuracy"]),
                    "worst_below_frozen_points": 100 * summary["worst_below_frozen"],
                    "frames": run.frames,
                }
                say(f"{name}, {method}, {guard}: {one['gain_points']:+.1f}, at worst -{one['worst_below_frozen_points']:.1f}")
    return result


# --- drift --------------------------------------------------------------------------------------------------


def measure_drift(bench: Bench) -> dict[str, Any]:
    data = adapting.DATA / "cifar10"
    frames = 4000 if bench.quick else 20_000
    between = ",".join(f"clean*300,{family}@3*300" for family in FAMILIES)
    streams = {
        "unchanged": f"clean*{frames};data={data}",
        "sorted": f"clean*{frames};data={data};classes=sorted",
        "changes": f"{between},clean*300;data={data}",
    }
    model = adapting.model("resnet20-cifar10")
    return {name: bench.follow(model, stream, "none").summary for name, stream in streams.items()}


# --- all ----------------------------------------------------------------------------------------------------


def measure_master(bench: Bench, world: World) -> dict[str, Any]:
    """What `elastify --gates` noted about the accuracy at each share of the filters."""
    manifest = json.loads((bench.master(world) / "manifest.json").read_text())
    return {**json.loads(manifest["notes"]["master"]), "asked_s": bench.seconds}


def summarise(results: dict[str, Any]) -> dict[str, Any]:
    domains = results.get("domains", {})
    first = next(iter(domains.values()), {})
    guard = results.get("guard", {})
    drift = results.get("drift", {})
    keys = ("accuracy_gain_same_size_points", "accuracy_gain_pruned_points", "accuracy_to_large_points")
    keys += ("time_ratio_to_shot", "time_ratio_to_large", "memory_ratio", "memory_ratio_to_large", "inference_speedup")
    guarded = [one["worst_below_frozen_points"] for name, one in guard.items() if name.endswith("guarded")]
    alarms = [drift[name]["false_alarms"] for name in ("unchanged", "sorted") if name in drift]
    return {
        **{key: first.get(key) for key in keys},
        "worst_window_below_frozen_points": max(guarded, default=None),
        "false_alarms": sum(alarms) if alarms else None,
        "detection_delay_frames": drift.get("changes", {}).get("median_delay"),
        "writeback_gain_points": results.get("writeback", {}).get("gain_points"),
        "serve_p99_ratio": results.get("serve", {}).get("p99_ratio"),
    }


def print_results(results: dict[str, Any]) -> None:
    for world, result in results.get("domains", {}).items():
        print(f"{world}: 100 images of each domain, scored on {result['frames'] - LEARNT} others")
        print(f"  {'':<22}{'accuracy':>9}{'s each':>9}{'us/frame':>10}{'MB':>8}")
        for name, row in result["rows"].items():
            print(
                f"  {name:<22}{row['accuracy']:>9.1%}{row['seconds_each']:>9.2f}"
                f"{row['inference_us']:>10.0f}{row['memory_mb']:>8.0f}"
            )
    for name, one in results.get("guard", {}).items():
        print(f"{name:<28} {one['gain_points']:+6.1f} points, at worst -{one['worst_below_frozen_points']:.1f} over {SPAN}")
    for key, value in results["summary"].items():
        print(f"{key:<34} {'-' if value is None else f'{value:.3f}'}")


def parse_arguments() -> argparse.Namespace:
    parser = common.make_parser(__doc__)
    parser.add_argument("--limber", type=Path, default=common.LIMBER, help="default: the release build")
    parser.add_argument("--quick", action="store_true", help="under 8 minutes: short trainings and streams")
    parser.add_argument("--parts", default="", help=f"some of {','.join(PARTS)}; default: all")
    parser.add_argument("--worlds", default="", help=f"some of {','.join(world.name for world in WORLDS)}; default: all, with --quick the first")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--size", type=float, default=0.25, help="operations of a surrogate by the model's; default: 0.25")
    parser.add_argument("--budget", type=float, help="seconds to make a master in, and to train the small network; default: 1500, with --quick 60")
    parser.add_argument("--work", type=Path, default=measure.RESULTS / "adapt", help="what is kept")
    parser.add_argument("--output", type=Path, help="JSON file (default: adapt.json in bench/results)")
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    parts = common.select(PARTS, arguments.parts, lambda part: part)
    worlds: Sequence[World] = common.select(WORLDS, arguments.worlds, lambda world: world.name)
    if arguments.quick and not arguments.worlds:
        worlds = worlds[:1]
    worlds = [world for world in worlds if adapting.is_there(world.model, world.source)]
    if not worlds:
        raise common.UsageError(f"the models and images of ../shared are not there; looked for {adapting.DATA}")
    bench = Bench(arguments)
    results: dict[str, Any] = {"machine": measure.host(bench.limber, measure.load_before())}
    start = time.monotonic()
    if "master" in parts:
        results["master"] = {world.name: measure_master(bench, world) for world in worlds}
    if "domains" in parts:
        results["domains"] = {world.name: measure_domains(bench, world) for world in worlds}
    if worlds[0].model == "resnet20-cifar10":
        if "writeback" in parts:
            results["writeback"] = measure_writeback(bench, worlds[0])
        if "guard" in parts:
            results["guard"] = measure_guard(bench)
        if "drift" in parts:
            results["drift"] = measure_drift(bench)
        if "serve" in parts:
            results["serve"] = adapting.serve_ratio(
                bench.limber,
                adapting.model(worlds[0].model),
                adapting.DATA / "cifar10" / "test",
                8.0 if bench.quick else 30.0,
                1 if bench.quick else 3,
            )
    results["summary"] = summarise(results)
    results["seconds"] = time.monotonic() - start
    print_results(results)
    measure.write_results(results, arguments.output or measure.RESULTS / "adapt.json")
    return 0


if __name__ == "__main__":
    common.run_main(main)
