"""An object of flags and the words that one would type for it."""

from __future__ import annotations

import pytest

from simulator.cli.flags import typed
from simulator.cli.options import Common


@pytest.mark.parametrize(("given", "words"), [
    ({}, []), ({"quiet": True}, ["--quiet"]), ({"quiet": True, "json": True}, ["--quiet", "--json"])])
def test_what_differs_from_its_default_is_typed(given: dict[str, bool], words: list[str]) -> None:
    assert typed(Common(**given)) == words
    assert typed(Common(**given), "quiet") == [word for word in words if word != "--quiet"]
