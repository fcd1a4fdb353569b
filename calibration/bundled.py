"""The bundled profiles, made again from the measured figures where these are at hand.

    python -m calibration.fit --all --measured ../shared/measured

It prints the errors of each and whether it still is the bundled one, and with --write puts it in its place. The
figures themselves are not part of the project; each profile names where they come from.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path

from calibration.published import aiconfigurator, distserve, llmservingsim, splitwise, vidur
from cost_models import CostModelError, Profile, bundled_profiles, choose
from cost_models.fits import Error
from cost_models.writing import profile_text
from simulator.errors import InputError
from simulator.saved import write_whole

MEASURED = Path(__file__).resolve().parents[2] / "shared" / "measured"
RECIPES: dict[str, Callable[[Path], Profile]] = {
    **aiconfigurator.PROFILES, **splitwise.PROFILES, distserve.NAME: distserve.opt_13b_a100,
    vidur.NAME: vidur.llama_2_70b_a100, llmservingsim.RTX_4090: llmservingsim.rtx_4090,
    llmservingsim.RTX_PRO_6000: llmservingsim.rtx_pro_6000}
"""How each derived profile is made from the folder of measured figures."""
HEADER = "Made by `python -m calibration.fit`. Steps in milliseconds, kernels in microseconds, errors in percent."
CLOSE = 1e-3
"""Relative difference up to which two fits are the same: the last digit depends on the linear algebra library."""


def made(name: str, measured: Path = MEASURED) -> Profile:
    """The profile of that name, made anew. Raises CostModelError if it is unknown or its figures are not there."""
    recipe = RECIPES[choose("derived profile", name, RECIPES)]
    try:
        return recipe(measured)
    except OSError as error:
        raise CostModelError(f"{error.filename}: {error.strerror}: give the folder of measured figures with --measured"
                             ) from None


def differences(one: object, other: object, where: str = "") -> list[str]:
    """Where two profiles differ by more than rounding; the errors, which depend on it, are left out."""
    if isinstance(one, float) and isinstance(other, float | int):
        return [] if abs(one - other) <= CLOSE * max(abs(one), abs(other)) else [f"{where}: {one} and {other}"]
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        return [line for at, pair in enumerate(zip(one, other, strict=True))
                for line in differences(*pair, f"{where}[{at}]")]
    if hasattr(one, "__dataclass_fields__") and type(one) is type(other):
        names = [name for name in vars(one) if name != "errors"]
        return [line for name in names for line in differences(getattr(one, name), getattr(other, name),
                                                              f"{where}.{name}".lstrip("."))]
    return [] if one == other else [f"{where}: {one!r} and {other!r}"]


def main(argv: Sequence[str] | None = None) -> int:
    """Make profiles and print their errors; 1 if one differs from the bundled one, 2 for wrong input."""
    parser = argparse.ArgumentParser(prog="python -m calibration.fit", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(RECIPES)}")
    parser.add_argument("--all", action="store_true", help="all of them")
    parser.add_argument("--measured", type=Path, default=MEASURED, help="folder of measured figures")
    parser.add_argument("--write", action="store_true", help="replace the bundled profile")
    asked = parser.parse_args(argv)
    names = list(RECIPES) if asked.all else asked.names
    if not names:
        parser.error("name a profile, or give --all")
    try:
        return max([_one(made(name, asked.measured), asked.write) for name in names])
    except (CostModelError, InputError) as error:
        print(f"calibration: {error}", file=sys.stderr)
        return 2


def _one(profile: Profile, write: bool) -> int:
    """Print one profile's errors, and write it or compare it."""
    told = [f"{kind} {_told(error)}" for kind, error in vars(profile.fit.errors).items() if error]
    print(f"{profile.name}: {'; '.join(told) or 'no error is known'}")
    if write:
        place = Path(str(files("cost_models"))) / "profiles" / f"{profile.name}.yaml"
        write_whole(place, profile_text(profile, HEADER))
        return 0
    bundled = bundled_profiles().get(profile.name)
    found = ["it is not there"] if bundled is None else differences(profile, bundled)
    print("  the same as the bundled one" if not found else f"  not the bundled one: {found[0]}")
    return 1 if found else 0


def _told(error: Error) -> str:
    bias = f", bias {error.bias_percent:+.2f}" if error.bias_percent is not None else ""
    seen = "unseen" if error.held_out else "fitted"
    points = f" on {error.points:,} {seen} steps" if error.points else ""
    return f"MAPE {error.mape_percent:.2f}, p95 {error.p95_percent:.2f}{bias}{points}"

