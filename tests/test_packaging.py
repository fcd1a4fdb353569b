"""What is released: what the archives hold, that they are the same each time, and that the facts in them agree."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml

from simulator.version import __version__

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES = ("calibration", "cost_models", "simulator", "traces")
BESIDE = {"CHANGELOG.md", "CITATION.cff", "LICENSE", "README.md", "pyproject.toml", ".gitignore", "PKG-INFO"}
"""Files of the source archive that are in no folder."""
DATA = {".py", ".typed", ".yaml", ".css", ".js"}
"""Endings of what a package holds."""


def build(target: str, tree: Path, folder: Path) -> Path:
    """The archive that hatchling makes of a tree."""
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)], cwd=tree, check=True,
                   capture_output=True)
    [archive] = folder.glob("*.whl" if target == "wheel" else "*.tar.gz")
    return archive


def tree(folder: Path) -> set[str]:
    """Names of all files in a folder of the project that git would keep."""
    paths = [path.relative_to(ROOT) for path in (ROOT / folder).rglob("*") if path.is_file()]
    return {path.as_posix() for path in paths if not any(part.startswith((".", "__pycache__")) for part in path.parts)}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source archive."""
    if find_spec("hatchling") is None:
        pytest.skip("needs hatchling: pip install '.[dev]'")
    return build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, made of the source archive."""
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(source) as archive:
        archive.extractall(folder, filter="data")
    return build("wheel", folder / f"batchsim-{__version__}", tmp_path_factory.mktemp("wheel"))


def test_the_source_archive_is_the_tree(source: Path) -> None:
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names == BESIDE | {name for folder in (*PACKAGES, "notebooks", "tests") for name in tree(Path(folder))}


def test_the_wheel_is_the_packages(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
    about = {name for name in names if name.startswith(f"batchsim-{__version__}.dist-info/")}
    assert names - about == {name for package in PACKAGES for name in tree(Path(package))}
    assert {Path(name).suffix for name in names - about} == DATA
    assert {f"{package}/py.typed" for package in PACKAGES} <= names
    assert f"batchsim-{__version__}.dist-info/licenses/LICENSE" in about


def test_both_are_the_same_bytes_again_and_the_wheel_is_also_that_of_the_tree(source: Path, wheel: Path,
                                                                              tmp_path: Path) -> None:
    assert build("sdist", ROOT, tmp_path).read_bytes() == source.read_bytes()
    assert build("wheel", ROOT, tmp_path).read_bytes() == wheel.read_bytes()


def test_the_citation_is_of_this_version() -> None:
    told = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    about = PROJECT["project"]
    assert (told["title"], told["version"], told["license"]) == (about["name"], __version__, about["license"])
    assert told["authors"] == [{"name": "The batchsim authors"}]
    assert (told["cff-version"], told["keywords"]) == ("1.2.0", about["keywords"])


def test_the_changelog_begins_with_what_is_not_yet_released() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert versions[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+] - \d{4}-\d\d-\d\d", version) for version in versions[1:])
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.*)$", text, re.MULTILINE)) <= kinds
