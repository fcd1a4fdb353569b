"""What is written is read back as the same profile."""

from pathlib import Path

import pytest

from cost_models import bundled_profiles, read_profile
from cost_models.profile import Profile
from cost_models.writing import profile_text

HERE = Path(__file__).parent
PROFILES = [*bundled_profiles().values(), read_profile(HERE / "table.yaml"), read_profile(HERE / "round.yaml")]


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
def test_a_profile_comes_back(profile: Profile, tmp_path: Path) -> None:
    text = profile_text(profile, "a comment", "another one")
    assert text.startswith("# a comment\n# another one\nschema_version: 2\n")
    (tmp_path / "p.yaml").write_text(text, encoding="utf-8")
    assert read_profile(tmp_path / "p.yaml") == profile


def test_lists_stand_on_one_line_and_defaults_are_left_out() -> None:
    lines = profile_text(read_profile(HERE / "table.yaml")).splitlines()
    assert "      context: [16, 64, 256]" in lines
    assert not any("raw" in line or "null" in line for line in lines)
