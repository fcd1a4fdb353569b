"""`batchsim calibrate`: time this machine's kernels, and write a profile. It is the only command that needs torch.

In a notebook: `calibration.run.calibrate(calibration.run.job("tiny", "cpu"), Path("samples.jsonl"))`.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from simulator.cli import complete
from simulator.cli.console import answers, print_json
from simulator.cli.drawing import as_files, check_drawing
from simulator.cli.flags import with_flags
from simulator.cli.lines import note
from simulator.cli.options import RESULT_DIR, Common
from simulator.cli.output import ResultDirectory
from simulator.cli.progress import Bar
from simulator.errors import InputError

if TYPE_CHECKING:
    from calibration.run import Calibration
    from calibration.validation import Validation


@with_flags
def calibrate(common: Common,
              model: Annotated[str | None, Option(metavar="NAME|FILE", autocompletion=complete.models, help=(
                  "A model shaped like Llama. If not given: llama-3.1-8b, and on a CPU `tiny`, a miniature."))] = None,
              device: Annotated[str, Option(metavar="cuda|cpu", autocompletion=complete.devices, help=(
                  "What to time."))] = "cuda",
              output: Annotated[str | None, Option("--output", "-o", metavar="FILE", help=(
                  f"The profile, a .yaml file; report, picture and samples go beside it. In {RESULT_DIR} if not given. "
                  "Replaces only what an earlier run wrote there."))] = None,
              quick: Annotated[bool, Option("--quick", metavar="", help="Fewer sizes and fewer repeats.")] = False,
              validate: Annotated[bool, Option("--validate", metavar="", help=(
                  "Then run a short workload for real under static and vllm, and simulate it."))] = False,
              resume: Annotated[bool, Option("--resume", metavar="", help=(
                  "Go on with the samples of a calibration that was interrupted."))] = False,
              force: Annotated[bool, Option("--force", metavar="", help="Replace any file.")] = False) -> None:
    """Time real kernels on this machine and fit a cost profile to them.

    Give the profile to the other commands with --cost-model FILE.
    """
    if find_spec("torch") is None:
        raise InputError("calibrate needs torch, which is not installed: pip install 'batchsim[calibration]', or "
                         "'.[calibration]' in a checkout")
    check_drawing()
    from calibration import run, validation
    job = run.job(model, device, quick=quick, seed=common.seed_number)
    path = Path(RESULT_DIR) / f"{job.name}.yaml" if output is None else Path(output)
    if path.suffix not in (".yaml", ".yml"):
        raise InputError(f"--output must name a .yaml file, not '{path}'")
    directory, names = ResultDirectory(path.parent, force=force), _names(path)
    directory.check(names.values())
    kept = path.with_name(f"{names['samples']}.part")
    if resume and not kept.exists():
        raise InputError(f"there is nothing to resume, no {kept}: leave --resume out")
    if kept.exists() and not (resume or force):
        raise InputError(f"{kept} holds what an interrupted calibration has timed: give --resume to go on with it, or "
                         "--force to start anew")
    with Bar(f"calibrate {job.name}", unit="points", quiet=common.quiet) as bar:
        try:
            found = run.calibrate(job, kept, resume=resume, progress=bar.one)
        except KeyboardInterrupt:
            note(f"batchsim: what has been timed is kept in {kept}: go on with --resume")
            raise
    checked = validation.validate(job, found) if validate else None
    directory.write(_files(names, kept, found, checked))
    kept.unlink()
    _answer(common, path, names, found, checked)


def _names(path: Path) -> dict[str, str]:
    """The files of a calibration, by what they hold."""
    return {"profile": path.name, "report": f"{path.stem}.md", "picture": f"{path.stem}.measured_vs_predicted.svg",
            "samples": f"{path.stem}.samples.jsonl"}


def _files(names: dict[str, str], kept: Path, found: Calibration, checked: Validation | None) -> dict[str, bytes]:
    from calibration.report import figure, report
    from cost_models.writing import profile_text
    text = profile_text(found.profile, f"Written by batchsim calibrate; {names['report']} tells more.")
    return {names["profile"]: text.encode(), names["report"]: report(found, names["picture"], checked).encode(),
            **as_files({names["picture"]: figure(found.fitted)}),
            names["samples"]: kept.read_bytes()}


def _answer(common: Common, path: Path, names: dict[str, str], found: Calibration, checked: Validation | None) -> None:
    from calibration.report import error_table
    from simulator.cli.tables import print_table
    if common.json:
        print_json(_document(path, found, checked))
        return
    profile, chosen = found.profile, found.chosen
    answers().print(f"{profile.name}: {profile.origin.source}\nattention: {chosen.path.name}, pages of "
                    f"{chosen.page_size} tokens, error {chosen.error:.1g} against float64", markup=False)
    print_table(answers(), error_table(found.fitted))
    if checked:
        print_table(answers(), checked.table())
    if not common.quiet:
        note(f"written to {path.parent}/: {', '.join(names.values())}")


def _document(path: Path, found: Calibration, checked: Validation | None) -> dict[str, Any]:
    errors = {form: {kind: vars(error) for kind, error in vars(errors).items() if error}
              for form, errors in found.fitted.errors.items()}
    document: dict[str, Any] = {"profile": str(path), "form": found.profile.fit.form, "errors": errors,
                                "attention": found.chosen.path.name, "attention_error": found.chosen.error}
    if checked:
        document["validation"] = {"figures": [dict(zip(("name", "measured", "simulated"), figures, strict=True))
                                              for figures in checked.figures()],
                                  "same_tokens": checked.same_tokens, "requests": checked.requests}
    return document
