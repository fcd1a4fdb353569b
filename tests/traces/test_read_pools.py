"""ServeGen's pools of clients: what is drawn keeps the published counts, and archives cannot do harm."""

import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pytest

from traces import TraceError, load
from traces.pools import Window

SECOND = 10**9
IDLE = "1200,0,0,,0,0\n"
FILES = {
    "chunk-0-trace.csv": "0,0.5,1.2,Gamma,0.7,2.8\n600,1,0.9,Weibull,1.3,1.1\n" + IDLE,
    "chunk-0-dataset.json": json.dumps({"0": {"input_tokens": "{10: 0.25, 20: 0.75}", "output_tokens": "{1: 1.0}"},
                                        "600": {"input_tokens": "{30: 1.0}", "output_tokens": "{2: 1, 3: 1}"}}),
    "chunk-7-trace.csv": "0,0.25,1,Gamma,1,4\n600,0,0,,0,0\n" + IDLE,
    "chunk-7-dataset.json": json.dumps({"0": {"text_tokens": "{}", "output_tokens": "{5: 0.0}"},
                                        "300": {"text_tokens": "{7: 1e-05}", "output_tokens": "{0: 1.0}"}}),
}


def packed(path: Path, files: dict[str, str], folder: str = "data/pool/") -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(folder + name)
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return path


@pytest.fixture
def pool(tmp_path):
    return packed(tmp_path / "pool.tar.gz", FILES)


def test_each_client_has_its_number_of_requests_in_each_window(pool):
    trace = load(pool)
    assert (trace.report.format, len(trace), trace.report.rows_in) == ("servegen", 300 + 600 + 150, 1050)
    clients = np.array(trace.tenant)
    assert set(trace.tenant) == {"chunk-0", "chunk-7"}
    assert (clients == "chunk-7").sum() == 150
    assert set(trace.prompt[clients == "chunk-7"].tolist()) == {7}
    assert set(trace.output[clients == "chunk-7"].tolist()) == {1}, "0 tokens are drawn as 1"
    own = trace.prompt[clients == "chunk-0"]
    assert (set(own[:300].tolist()), set(own[300:].tolist())) == ({10, 20}, {30})
    assert (own[:300] == 20).mean() == pytest.approx(0.75, abs=0.1)
    assert trace.span_s < 1200


def test_prompt_and_output_are_drawn_apart(tmp_path):
    lengths = "{" + ", ".join(f"{tokens}: 1" for tokens in range(1, 1001)) + "}"
    files = {"chunk-0-trace.csv": "0,100,1,Gamma,1,0.01\n",
             "chunk-0-dataset.json": json.dumps({"0": {"input_tokens": lengths, "output_tokens": lengths}})}
    trace = load(packed(tmp_path / "p.tar", files))
    assert len(trace) == 60_000
    assert abs(np.corrcoef(trace.prompt, trace.output)[0, 1]) < 0.02
    assert trace.prompt.mean() == pytest.approx(500.5, rel=0.02)
    gaps = np.diff(trace.arrival)
    assert gaps.std() / gaps.mean() == pytest.approx(1, abs=0.03)


def test_the_seed_decides_and_a_limit_or_a_window_changes_nothing_else(pool):
    whole = load(pool, seed=3)
    assert load(pool, seed=3).digest == whole.digest
    assert load(pool, seed=4).digest != whole.digest
    assert load(pool, seed=3, limit=100).digest == whole.head(100).digest
    start = int(np.searchsorted(_absolute(pool), 600 * SECOND))
    part = load(pool, seed=3, window="00:10-00:20")
    assert part.prompt.tolist() == whole.prompt[start:].tolist()
    with pytest.raises(TraceError, match="no requests in the window 00:20-00:30"):
        load(pool, window="00:20-00:30")


def _absolute(pool: Path) -> np.ndarray:
    """Arrivals counted from the pool's own zero: a window that begins there keeps them apart from it."""
    from traces.pools import draw
    from traces.readers.content import content_of
    from traces.readers.servegen import _clients
    with content_of(pool) as content:
        drawn = draw(_clients(content), 3, None, None)
    assert drawn is not None
    return drawn[0]


@pytest.mark.parametrize(("family", "shape"), [("Weibull", 1e-3), ("Gamma", 1e-9)])
def test_gaps_of_an_extreme_shape_are_even(family, shape):
    """Of a hundred such gaps one has no end, or all vanish."""
    window = Window(50, 1050, 99, family, shape)
    assert window.arrivals(np.random.default_rng(0)).tolist() == list(range(60, 1050, 10))


def test_a_folder_reads_as_its_archive_does(tmp_path, pool):
    folder = tmp_path / "pool"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    assert load(folder).digest == load(pool).digest


@pytest.mark.parametrize("name", ["../../chunk-0-trace.csv", "/etc/chunk-0-trace.csv"])
def test_a_member_that_points_outside_is_refused(tmp_path, name):
    with pytest.raises(TraceError, match=r"p\.tar: member .*chunk-0-trace.csv points outside of the archive"):
        load(packed(tmp_path / "p.tar", {name: ""}, ""))


def test_links_are_passed_over(tmp_path):
    with tarfile.open(tmp_path / "p.tar", "w") as archive:
        link = tarfile.TarInfo("chunk-0-trace.csv")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    with pytest.raises(TraceError, match=r"p\.tar: holds no files"):
        load(tmp_path / "p.tar")


@pytest.mark.parametrize(("name", "text", "message"), [
    ("chunk-0-trace.csv", "0,1,1,Pareto,1,1\n", "line 1: '0,1,1,Pareto,1,1' must hold start, rate, CV, family"),
    ("chunk-0-trace.csv", "0,nan,1,Gamma,1,1\n", "must hold start, rate"),
    ("chunk-0-trace.csv", "0,1,1,Gamma,0,1\n", "must hold start, rate"),
    ("chunk-0-trace.csv", "0,1\n", "must hold start, rate"),
    ("chunk-0-trace.csv", "0,1,1,Gamma,1,1\n0,1,1,Gamma,1,1\n", "windows must follow each other in time"),
    ("chunk-0-trace.csv", "0,999999999,1,Gamma,1,1\n", "599,999,999,400 requests in one window"),
    ("chunk-0-dataset.json", "[]", "must be a JSON object of windows"),
    ("chunk-0-dataset.json", '{"x": {}}', "must be a JSON object of windows"),
    ("chunk-0-dataset.json", '{"0": {}}', "input_tokens must be text such as '{45: 0.25, 46: 0.75}', not None"),
    ("chunk-0-dataset.json", '{"0": {"input_tokens": "__import__(1)"}}', "input_tokens must be text such as"),
    ("chunk-0-dataset.json", '{"0": {"input_tokens": "{1: -1}", "output_tokens": "{1: 1}"}}',
     "input_tokens: probabilities must be 0 or more"),
    ("chunk-0-dataset.json", '{"0": {"input_tokens": "{1: 1..2}", "output_tokens": "{1: 1}"}}', "could not convert"),
    ("chunk-0-dataset.json", '{"0": {"input_tokens": "{1: 0}", "output_tokens": "{1: 1}"}}',
     "no input_tokens with a probability above 0"),
    ("readme.txt", "", "readme.txt is no file of a pool"),
])
def test_what_is_wrong_in_a_pool_is_named_by_file(tmp_path, name, text, message):
    with pytest.raises(TraceError) as refusal:
        load(packed(tmp_path / "p.tar.gz", {**FILES, name: text}, ""))
    assert str(refusal.value).startswith(f"{tmp_path / 'p.tar.gz'}, " if "readme" not in name else str(tmp_path))
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_client_without_lengths_is_named(tmp_path):
    files = {name: text for name, text in FILES.items() if name != "chunk-7-dataset.json"}
    with pytest.raises(TraceError, match=r"chunk-7 has requests but no chunk-7-dataset\.json"):
        load(packed(tmp_path / "p.tar", files))


def test_columns_and_units_do_not_fit_a_pool(pool):
    with pytest.raises(TraceError, match="which have no columns to name"):
        load(pool, unit="s")


def test_a_file_of_a_pool_that_is_no_text_is_named(tmp_path):
    (tmp_path / "chunk-0-trace.csv").write_bytes(b"0,1,\xff")
    with pytest.raises(TraceError) as refusal:
        load(tmp_path)
    assert str(refusal.value) == f"{tmp_path}, chunk-0-trace.csv is not UTF-8 (invalid start byte at byte 4)"
