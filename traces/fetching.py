"""Fetching: public traces from their own homes, checked, kept in the user's cache, and known by name from then on.

The catalogue is `traces/catalogue.yaml`. A file is there whole and with the pinned checksum, or not at all.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from urllib.parse import urlsplit

from traces.errors import TraceError, unknown
from traces.strict import count, made, read_yaml, texts
from traces.trace import Trace

CHECKSUMS = {"measured": "measured by us on the file", "git-lfs": "from the repository's own pointer to the file",
             "second-hand": "second-hand: published by others, the file not seen by us"}
TIMEOUT_S = 30
"""How long a server may be silent."""


@dataclass(frozen=True)
class Public:
    """A public trace.

    Attributes:
        name: What `--trace` calls it.
        about: What it is, in a line.
        url: Its own home.
        sha256: Of the file.
        checksum: Who saw that checksum, a key of CHECKSUMS.
        licence, citation: Terms and paper.
        bytes, rows: Its size; None where it is not known.
    """

    name: str
    about: str
    url: str
    sha256: str
    checksum: str
    licence: str
    citation: str
    bytes: int | None = None
    rows: int | None = None

    def __post_init__(self) -> None:
        texts(self, "name", "about", "url", "sha256", "checksum", "licence", "citation")
        if len(self.sha256) != 64 or self.checksum not in CHECKSUMS or urlsplit(self.url).scheme not in (
                "http", "https"):
            raise TraceError(f"{self.name}: a url, a sha256 and who saw it (one of {', '.join(CHECKSUMS)}) are needed")
        for name in ("bytes", "rows"):
            if (value := getattr(self, name)) is not None:
                count(name, value)

    @property
    def here(self) -> bool:
        """Whether its file has been fetched."""
        return self.path.exists()

    @property
    def path(self) -> Path:
        """Where its file is, once it has been fetched."""
        return folder() / self.name / (Path(urlsplit(self.url).path).name or "trace")

    def labelled(self, trace: Trace) -> Trace:
        """The trace that was read from its file, under its own name, with its source and its terms."""
        return replace(trace, name=self.name, source=f"{self.about}; {self.citation}; {self.url}",
                       licence=self.licence)


@cache
def catalogue() -> Mapping[str, Public]:
    """The public traces that can be fetched, by name."""
    with as_file(files("traces").joinpath("catalogue.yaml")) as path:
        return catalogue_of(path)


def catalogue_of(path: Path) -> Mapping[str, Public]:
    """The public traces that a YAML file lists, by name."""
    listed = read_yaml(path)
    if not isinstance(listed, list):
        raise TraceError(f"{path.name}: must be a list of traces")
    found = [made(Public, each, f"{path.name}, entry {number}") for number, each in enumerate(listed, 1)]
    return {public.name: public for public in found}


def folder() -> Path:
    """Where fetched files are kept: below XDG_CACHE_HOME, else below ``~/.cache``."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "batchsim" / "traces"


def public(name: str) -> Public:
    """The entry of that name; raises TraceError with the nearest one."""
    known = catalogue()
    if name not in known:
        raise unknown("public trace", name, known)
    return known[name]


def fetch(found: Public) -> Path:
    """Download the file unless it is there already, check it, and keep it. Raises TraceError where that fails."""
    import pooch
    from requests import RequestException

    pooch.get_logger().setLevel("ERROR")
    try:
        pooch.retrieve(found.url, f"sha256:{found.sha256}", found.path.name, found.path.parent,
                       downloader=pooch.HTTPDownloader(timeout=TIMEOUT_S))
    except RequestException as error:
        raise TraceError(f"{found.name} cannot be fetched from {found.url} ({_reason(error)}); "
                         "nothing was kept") from None
    except OSError as error:
        raise TraceError(f"{found.name} cannot be kept in {found.path.parent} ({_reason(error)}): set XDG_CACHE_HOME "
                         "to a folder that can be written") from None
    except ValueError:
        raise TraceError(f"{found.name}: the file at {found.url} is not the one that was pinned (its sha256 is not "
                         f"{found.sha256}); nothing was kept") from None
    return found.path


def _reason(error: Exception) -> str:
    """Why a download failed, in a few words: the status, or the innermost cause."""
    response = getattr(error, "response", None)
    if response is not None:
        return f"status {response.status_code}"
    while (inner := error.__cause__ or error.__context__) is not None and isinstance(inner, Exception):
        error = inner
    return getattr(error, "strerror", None) or type(error).__name__
