#!/usr/bin/python3
"""Checks that limber gives ONNX Runtime's answers.

Every model of build/models (written by tests/models/export.py when missing or out of date) and, when present,
of ../shared/models runs on the same seeded random inputs in both, for several batch sizes; and so do random
variants of some of them, as `limber elastify` makes and `limber export` writes them. A case passes if
for each output max |difference| / max |reference| is at most the tolerance and integer outputs are equal.
The last line is "N passed, N failed, N skipped". Exit codes: 0 all passed, 1 a case failed, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Sequence
from urllib.parse import quote

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "bench"))

from peers import common  # noqa: E402

numpy = common.require_module("numpy", "python3-numpy")

QUICK_MODELS = (
    "resnet20", "resnet56", "unet_small", "convnext_small", "inception_small", "swin_small",
    "nasty_shapes", "nasty_resample", "nasty_norms", "nasty_lrn", "nasty_activations", "nasty_indexing",
    "squeezenet1_1", "mobilenet_v3_small", "shufflenet_v2_x1_0",
    "resnet20-cifar10", "resnet20-svhn", "resnet56-cifar10", "vit-tiny",
)  # fmt: skip
VARIANT_MODELS = ("resnet20", "mobilenet_v3_small", "vit_tiny", "shufflenet_v2_x1_0")
TIMEOUT = 300.0


@dataclass(frozen=True)
class Case:
    """One model at one batch size."""

    model: Path
    batch: int


@dataclass(frozen=True)
class Outcome:
    """The worst output of a case; `failure` is empty when it passed, `skip` when it could be tried."""

    difference: common.Difference = common.Difference(0.0, 0.0)
    failure: str = ""
    skip: str = ""


def find_models(arguments: argparse.Namespace) -> list[Path]:
    """Returns the model files to test, exporting those of the zoo that are selected."""
    shared = sorted(common.SHARED_MODELS.glob("*.onnx"))
    files = [common.MODELS / f"{name}.onnx" for name in common.exportable()] + shared
    if arguments.models:
        files = common.select(files, arguments.models, lambda file: file.stem)
    elif arguments.quick:
        files = [file for file in files if file.stem in QUICK_MODELS]
    common.export_models([file.stem for file in files if file.parent == common.MODELS])
    return files


def random_variant(manifest: dict, random: Random) -> str:
    """Returns a variant of an elastic model that has as few originals as chance allows."""
    blocks = manifest["blocks"]
    chosen: list[str] = []
    block = 0
    while block < len(blocks):
        fitting = [a for a in blocks[block]["alternatives"] if block + a["span"] <= len(blocks)]
        choice = random.choice(fitting[1:] or fitting)  # the original is the first
        if choice is not fitting[0]:
            chosen.append(f"{quoted(blocks[block]['name'])}={quoted(choice['name'])}")
        block += choice["span"]
    return ",".join(chosen) or "original"


def quoted(name: str) -> str:
    """A name inside a variant: see docs/elastic-model-format.md."""
    return quote(name, safe="_./:+-").replace("~", "%7E")


def write_variants(limber: Path, arguments: argparse.Namespace, folder: Path) -> list[Path]:
    """Makes some models elastic and exports random variants of each."""
    files = []
    random = Random(arguments.seed)
    for name in VARIANT_MODELS[: 1 if arguments.quick else None]:
        model = common.MODELS / f"{name}.onnx"
        elastic = folder / name
        elastify = ["elastify", str(model), "--data", "synthetic:count=64", "--batch", "4", "--budget", "none"]
        common.run_quietly([str(limber), *elastify, "-o", str(elastic)], TIMEOUT)
        manifest = json.loads((elastic / "manifest.json").read_text())
        for number in range(arguments.variants):
            files.append(folder / f"{name}-variant{number}.onnx")
            variant = ["--variant", random_variant(manifest, random), "-o", str(files[-1])]
            common.run_quietly([str(limber), "export", str(elastic), *variant], TIMEOUT)
    return files


def write_inputs(case: Case, folder: Path, seed: int) -> dict[str, str]:
    """Writes the case's inputs as .npy and returns input name -> file."""
    files = {}
    for index, spec in enumerate(common.model_inputs(case.model)):
        file = folder / f"in{index}.npy"
        numpy.save(file, common.random_input(spec, case.batch, seed))
        files[spec.name] = str(file)
    return files


def load_outputs(folder: Path, listing: object) -> dict[str, numpy.ndarray]:
    """Loads what a listing [{"name", "file", ...}, ...] names, in its order."""
    if not isinstance(listing, list):
        raise common.WorkerError(f"{folder.name}: the list of outputs is not a list")
    return {entry["name"]: numpy.load(folder / entry["file"]) for entry in listing}


def run_reference(reference: common.Worker, case: Case, inputs: dict[str, str], folder: Path) -> dict:
    """Returns ONNX Runtime's outputs, name -> array; raises WorkerError."""
    folder.mkdir()
    job = {"model": str(case.model), "inputs": inputs, "output": str(folder)}
    return load_outputs(folder, common.read_json(reference.ask(json.dumps(job), TIMEOUT), "ort_run.js"))


def run_limber(limber: Path, case: Case, inputs: dict[str, str], folder: Path, threads: int) -> dict:
    """Returns limber's outputs, name -> array; raises WorkerError with the end of its stderr."""
    command = [str(limber), "run", str(case.model), "--output", str(folder), "--threads", str(threads)]
    for name, file in inputs.items():
        command += ["--input", f"{name}={file}"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT)
    except subprocess.TimeoutExpired as error:
        raise common.WorkerError(f"limber gave no answer within {TIMEOUT:.0f} s") from error
    if result.returncode != 0:
        raise common.WorkerError(f"limber exit {result.returncode}: {common.tail(result.stderr)}")
    listing = folder / "outputs.json"
    if not listing.is_file():
        raise common.WorkerError("limber wrote no outputs.json")
    return load_outputs(folder, common.read_json(listing.read_text(), str(listing)))


def judge(reference: dict, result: dict, tolerance: float) -> Outcome:
    """Compares all outputs and returns the worst."""
    if list(reference) != list(result):
        return Outcome(failure=f"outputs {list(result)} instead of {list(reference)}")
    differences = {name: common.compare(reference[name], result[name]) for name in reference}
    name, worst = max(differences.items(), key=lambda item: item[1].relative)
    worst = common.Difference(worst.relative, max(d.elementwise for d in differences.values()), worst.why)
    if worst.relative <= tolerance:
        return Outcome(worst)
    return Outcome(worst, failure=f"output '{name}': {worst.why or f'relative error {worst.relative:.2e}'}")


def run_case(case: Case, reference: common.Worker, limber: Path, arguments: argparse.Namespace) -> Outcome:
    """Runs one case in a temporary folder that is gone afterwards.

    A model ONNX Runtime refuses is skipped. Raises WorkerDied if the reference process is lost.
    """
    with tempfile.TemporaryDirectory(prefix="parity-", dir=arguments.scratch) as name:
        folder = Path(name)
        inputs = write_inputs(case, folder, arguments.seed)
        try:
            expected = run_reference(reference, case, inputs, folder / "ort")
        except common.WorkerDied:
            raise
        except common.WorkerError as error:
            return Outcome(skip=str(error))
        try:
            result = run_limber(limber, case, inputs, folder / "limber", arguments.threads)
        except (common.WorkerError, OSError, ValueError, KeyError, TypeError) as error:
            return Outcome(failure=str(error))
    return judge(expected, result, arguments.tolerance)


def print_case(case: Case, outcome: Outcome, seconds: float) -> None:
    """Prints the table's row for a case."""
    head = f"{case.model.stem:<30} {case.batch:>5}"
    if outcome.skip:
        print(f"{head} {'-':>10} {'-':>12}  skipped: {outcome.skip}", flush=True)
        return
    figures = f"{outcome.difference.relative:>10.1e} {outcome.difference.elementwise:>12.1e}"
    verdict = f"FAILED: {outcome.failure}" if outcome.failure else "ok"
    print(f"{head} {figures}  {verdict}  ({seconds:.1f} s)", flush=True)


def run_all(cases: Sequence[Case], limber: Path, arguments: argparse.Namespace) -> list[Outcome]:
    """Runs the cases one after the other against one ONNX Runtime process, printing as it goes."""
    print(f"{'model':<30} {'batch':>5} {'relative':>10} {'elementwise':>12}")
    outcomes = []
    command = common.node_command(HERE / "ort_run.js", str(arguments.threads))
    with common.Worker("ONNX Runtime", command, common.node_environment()) as reference:
        for case in cases:
            start = time.monotonic()
            outcomes.append(run_case(case, reference, limber, arguments))
            print_case(case, outcomes[-1], time.monotonic() - start)
    return outcomes


def parse_arguments() -> argparse.Namespace:
    parser = common.make_parser(__doc__)
    parser.add_argument("--limber", type=Path, default=common.LIMBER, help="default: the release build")
    parser.add_argument("--models", default="", help="comma-separated names; default: all")
    parser.add_argument("--quick", action="store_true", help="small models, batches 1 and 3")
    parser.add_argument("--variants", type=int, default=3, help="of each elastic model (default: 3)")
    parser.add_argument("--batches", type=common.number_list, help="comma-separated (default: 1,3,8)")
    parser.add_argument("--tolerance", type=float, default=1e-4, help="default: 1e-4")
    parser.add_argument("--threads", type=int, default=2, help="for both engines (default: 2)")
    parser.add_argument("--seed", type=int, default=1, help="of the random inputs (default: 1)")
    arguments = parser.parse_args()
    arguments.batches = arguments.batches or ([1, 3] if arguments.quick else [1, 3, 8])
    arguments.scratch = ROOT / "build"
    return arguments


def main() -> int:
    arguments = parse_arguments()
    limber = common.limber_binary(arguments.limber)
    files = find_models(arguments)
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        if not arguments.models:
            files += write_variants(limber, arguments, Path(folder))
        cases = [Case(file, batch) for file in files for batch in arguments.batches]
        outcomes = run_all(cases, limber, arguments)
    failed = sum(bool(outcome.failure) for outcome in outcomes)
    skipped = sum(bool(outcome.skip) for outcome in outcomes)
    for case, outcome in zip(cases, outcomes):
        if outcome.failure:
            print(f"failed: {case.model.stem} batch {case.batch}: {outcome.failure}")
    print(f"{len(outcomes) - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    common.run_main(main)
