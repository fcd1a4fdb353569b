"""The guard: our own `traces` and `cost_models`, and not somebody else's packages of these names.

Both names are short enough for others to use. Whoever shadows or overwrites ours is named, with the way out. It
imports neither package: it looks where Python would take them from.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

from simulator.starting import is_command

HOME = Path(__file__).resolve().parent.parent
OURS = {"traces": "traces.standins", "cost_models": "cost_models.catalogue"}
"""Each package beside this one, and a module that its `__init__.py` names."""


def check() -> None:
    """Raise ImportError, one line, if one of our packages is shadowed, overwritten or missing."""
    for name, mark in OURS.items():
        ours = HOME / name / "__init__.py"
        if not ours.is_file():
            _refuse(f"the package '{name}' of batchsim is missing at {ours.parent}: run "
                    "`pip install --force-reinstall --no-deps batchsim`")
        if mark not in ours.read_text(encoding="utf-8", errors="replace"):
            _refuse(f"another distribution has overwritten the package '{name}' of batchsim at {ours.parent}: "
                    f"uninstall it, then run `pip install --force-reinstall --no-deps batchsim`")
        found = _found(name)
        if found is None or not _same(found, ours):
            _refuse(f"the package '{name}' of batchsim is hidden by another one at {found or 'an unknown place'}: "
                    f"rename that one or take it off sys.path (ours is at {ours.parent})")


def _found(name: str) -> Path | None:
    """The file that `import name` would run."""
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin) if spec is not None and spec.origin else None


def _same(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _refuse(message: str) -> None:
    """Raise ImportError; at the command line, where nobody could catch it, say the line and stop."""
    if is_command():
        print(f"batchsim: {message}", file=sys.stderr)
        raise SystemExit(2)
    raise ImportError(message)
