"""Find a cost model by name: a form, a bundled profile, or the path of a profile of one's own.

It knows which names exist and whether a profile belongs to a model, a GPU and a layout; no coefficient.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from cost_models.aiconfigurator import aiconfigurator
from cost_models.base import CostModel, CostModelError, choose
from cost_models.constant import Constant
from cost_models.fits import Errors, Range
from cost_models.profile import Profile, bundled_profiles, layout, read_profile
from cost_models.regimes import Regimes
from cost_models.roofline import Roofline
from cost_models.shapes import BYTES, GpuSpec, ModelSpec
from cost_models.specs import gpu_spec, model_spec
from cost_models.strict import located
from cost_models.table import Table

FORMS = ("auto", "roofline", "regimes", "table", "aiconfigurator", "constant")
PROFILED: dict[str, Callable[[Profile], CostModel]] = {"regimes": Regimes, "table": Table}
"""The forms that a profile may have."""
CONSTANT_MS = 10.0


def cost_model(
    name: str | Path = "auto",
    *,
    model: str | ModelSpec,
    gpu: str | GpuSpec,
    dtype: str = "bf16",
    kv_dtype: str = "bf16",
    tensor_parallel_size: int = 1,
) -> CostModel:
    """The cost model of this name for a model on a GPU.

    ``auto``: the bundled profile of exactly this model, GPU, dtypes and number of GPUs, else ``roofline``.
    ``roofline``: from specifications. ``regimes``, ``table``: the bundled profile in this form, or an error.
    ``aiconfigurator``: the kernel tables of that package, if it is installed.
    ``constant:MS``: one duration (10 ms without a number). Else the name of a bundled profile or the path of a
    profile (YAML), in the form that it names.
    Raises CostModelError, one line, for an unknown name, a wrong layout or a profile of something else.

    >>> from cost_models import StepShape
    >>> found = cost_model("auto", model="llama-3.1-8b", gpu="h100-80")
    >>> found.name, found.time(StepShape(decodes=8, context=8000))
    ('llama-3.1-8b-h100-80-bf16', 8279232)
    """
    model, gpu, text = model_spec(model), gpu_spec(gpu), str(name)
    choose("dtype", dtype, BYTES)
    choose("kv_dtype", kv_dtype, BYTES)
    model.check_layout(tensor_parallel_size)
    wanted = layout(model.name, gpu.name, dtype, kv_dtype, tensor_parallel_size)
    form, _, argument = text.partition(":")
    if form == "constant":
        return _constant(argument if ":" in text else f"{CONSTANT_MS}", text)
    if text == "aiconfigurator":
        return aiconfigurator(model, gpu, dtype, kv_dtype, tensor_parallel_size)
    if text in PROFILED:
        return _of_form(_bundled_for(wanted, text), text)
    profile = _fitting(text, wanted, model)
    if text == "auto":
        profile = next((known for known in bundled_profiles().values() if known.layout == wanted), None)
    if profile is None:
        return Roofline(model, gpu, dtype, kv_dtype, tensor_parallel_size)
    return _of_form(profile, profile.fit.form)


def _of_form(profile: Profile, form: str) -> CostModel:
    return PROFILED[form](profile)


def _constant(milliseconds: str, text: str) -> Constant:
    try:
        return Constant(round(float(milliseconds) * 1e6))
    except (ValueError, OverflowError):
        raise CostModelError(f"'{text}': give milliseconds above 0, as in constant:12.5") from None


def _bundled_for(wanted: str, form: str) -> Profile:
    layouts = {profile.layout: profile for profile in bundled_profiles().values()
               if getattr(profile.fit, form) is not None}
    if wanted not in layouts:
        known = f" (known: {', '.join(layouts)})" if layouts else ""
        raise CostModelError(f"no bundled profile for {wanted} has the form '{form}': use 'auto' or 'roofline'{known}")
    return layouts[wanted]


def profile_named(name: str | Path) -> Profile | None:
    """The profile of this name or in this file; None for a form. Raises CostModelError if there is none."""
    text = str(name)
    if text in FORMS or text.partition(":")[0] == "constant":
        return None
    if text.endswith((".yaml", ".yml")):
        return read_profile(text)
    return bundled_profiles()[choose("cost model", text, [*FORMS, *bundled_profiles()])]


def _fitting(text: str, wanted: str, model: ModelSpec) -> Profile | None:
    profile = profile_named(text)
    if profile is None:
        return None
    if profile.layout != wanted:
        raise CostModelError(f"profile '{text}' is for {profile.layout}, not {wanted}: use 'auto' instead")
    with located(f"profile '{text}'"):
        profile.model_shape.check(model)
    return profile


class CostModelRow(NamedTuple):
    """One line of a listing; None where a column does not apply or is not stated."""

    name: str
    form: str
    origin: str
    model: str | None = None
    gpu: str | None = None
    dtype: str | None = None
    kv_dtype: str | None = None
    tensor_parallel_size: int | None = None
    layout: str | None = None
    """``tp4``: tensor parallel on 4 GPUs."""
    errors: Errors | None = None
    """By kind of step, as the profile states them."""
    held_against: str | None = None
    """What they are errors of, see `CostModel.held_against`."""
    range: Range | None = None
    """Where the profile was measured."""


def available_cost_models() -> list[CostModelRow]:
    """The names that ``cost_model`` knows, the forms first."""
    return [
        CostModelRow("auto", "rule", "the bundled profile of this model, GPU and layout, else roofline"),
        CostModelRow("roofline", "roofline", "specifications, with assumed efficiencies"),
        CostModelRow("regimes", "regimes", "the bundled profile of this model, GPU and layout"),
        CostModelRow("table", "table", "the bundled kernel table of this model, GPU and layout"),
        CostModelRow("aiconfigurator", "table", "kernel tables of aiconfigurator-core (extra 'aic'), on the first use"),
        CostModelRow("constant", "constant", f"stated: constant:MS ms a step ({CONSTANT_MS:g} if not given)"),
        *[_row(profile) for profile in bundled_profiles().values()],
    ]


def _row(profile: Profile) -> CostModelRow:
    return CostModelRow(
        name=profile.name,
        form=profile.fit.form,
        origin=profile.provenance,
        model=profile.model,
        gpu=profile.gpu,
        dtype=profile.dtype,
        kv_dtype=profile.kv_dtype,
        tensor_parallel_size=profile.tensor_parallel_size,
        layout=f"tp{profile.tensor_parallel_size}",
        errors=profile.fit.errors,
        held_against=PROFILED[profile.fit.form](profile).held_against(),
        range=profile.fit.range,
    )
