"""Every reader of files that the project has: one good file for each, and what is read from it.

`PARSERS` is what tests and the table of `tests/tables/files.py` try hostile files on. It knows none of them.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import corpus

from calibration.samples import SampleFile
from cost_models.cache import cached
from cost_models.profile import profile_of
from simulator.cli.output import ResultDirectory
from simulator.cli.plot import _records
from simulator.cli.varied import listed
from simulator.conformance import conformance
from simulator.documents import bytes_of
from simulator.engine_runs import read_run
from simulator.kinds import SPEC as SPECIFIED
from simulator.kinds import load_trace, meant_as
from simulator.launching import translate
from simulator.report import chapters
from simulator.result import load
from simulator.scenario import Scenario
from simulator.scenarios import read_scenario
from simulator.scenarios.template import template
from simulator.setup import prepare
from simulator.simulation import run
from simulator.studies.campaign import Store, campaign
from simulator.studies.regression import save
from simulator.studies.regression.baseline import read_baseline
from simulator.studies.reproduce.spec import Spec
from simulator.studies.sweep import sweep
from simulator.studies.sweep.pictures import heatmap_frame, pareto_frame
from simulator.studies.sweep.records import to_csv, varied
from simulator.validation import _profile as profile_meant
from traces.fetching import catalogue_of
from traces.spec import generate, read_spec

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "tests" / "golden"
RECORDINGS = {"vllm": "11_output_len_1", "sglang": "s1_prefill_first", "tgi": "t8_phantom_prefix_after_budget_reject",
              "tensorrt_llm": "n3_static_batch"}
"""A short recording of each engine."""
SMALL = Scenario(num_prompts=12, cost_model="constant:20", kv_capacity_tokens=20_000.0, max_model_len=8_000)
MODEL = (b"name: mine\nlayers: 2\nhidden: 64\nheads: 4\nkv_heads: 2\nhead_dim: 16\nffn: 128\nvocab: 100\n"
         b"max_model_len: 4096\nsource: made up\n")
CONFIG = {"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
          "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 128, "vocab_size": 100,
          "max_position_embeddings": 4096, "tie_word_embeddings": False}
LAUNCH = b"vllm serve meta-llama/Llama-3.1-8B --max-num-seqs 64 --config launch.yaml --dtype bfloat16 --port 8000\n"
SPEC = (b"rows: 20\nprompt: {kind: empirical, file: lengths.txt}\noutput: {kind: lognormal, median: 20, sigma: 1}\n"
        b"arrivals: {kind: poisson, rate: 5}\n")
TIMED = (b'{"model": "tiny", "seed": 0}\n{"pass": 0, "kernel": "gemm", "dims": [1, 2], "us": [1.5, 1.6], "bytes": 10, '
         b'"flops": 20}\n')
SVG = (b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><title>t</title><g id="a"><rect x="1" y="1" '
       b'width="3" height="4" fill="#fff"/><use href="#a"/></g></svg>')
LINES = b'{"input_toks": 9, "output_toks": 3, "queued_ts": 1.0, "first_token_ts": 1.5, "last_token_ts": 2.0}\n'


@dataclass(frozen=True)
class Parser:
    """One reader of one kind of file.

    Attributes:
        name: What it reads, in words.
        file: How the file is called; a folder in front is made.
        sample: Makes a good one.
        read: What is read from the file at a path.
        beside: Other files that must lie there.
    """

    name: str
    file: str
    sample: Callable[[], bytes]
    read: Callable[[Path], object]
    beside: Callable[[], Mapping[str, bytes]] = field(default=dict)

    def laid(self, folder: Path, content: bytes) -> Path:
        """Lay the file with this content, and those beside it, into a folder; where the file is."""
        for name, each in {**self.beside(), self.file: content}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(each)
        return folder / self.file


@cache
def made() -> dict[str, bytes]:
    """What commands of ours write about a small run, by what it is."""
    with TemporaryDirectory() as folder:
        result = run(SMALL)
        save(f"{folder}/b.json", SMALL)
        found = sweep(num_prompts=12, cost_model="constant:20", vary={"seed": [0, 1]})
        with Store(f"{folder}/store") as store:
            campaign({"it": SMALL}, _first, store=store)
        [point] = (Path(folder) / "store" / "points").iterdir()
        account = {"account": found.account().plain(), "figures": ["heatmap.svg"], "scenario": result.asked}
        return {"result": result.to_json().encode(), "detailed": result.to_json(detailed=True).encode(),
                "baseline": (Path(folder) / "b.json").read_bytes(), "records": json.dumps(found.records).encode(),
                "point": point.read_bytes(), "name of the point": point.name.encode(),
                "account": json.dumps(account).encode()}


def _first(scenario: Scenario) -> dict[str, float]:
    return {"output_throughput": 1.5}


def _trace(path: Path) -> object:
    return load_trace(str(path))


def _generated(path: Path) -> object:
    with meant_as(SPECIFIED, path):
        return generate(read_spec(path)) if read_spec(path).rows < 10_000 else read_spec(path)


def _shaped(path: Path) -> object:
    return prepare(SMALL.but(model=str(path), cost_model="constant:9")).model


def _cached(path: Path) -> object:
    def ask() -> dict[str, object]:
        import yaml
        found: dict[str, object] = yaml.safe_load((ROOT / "tests" / "cost_models" / "table.yaml").read_text())
        return found

    with mock.patch.dict(os.environ, {"XDG_CACHE_HOME": str(path.parent.parent)}):
        return cached(path.name, lambda data: profile_of(data, path.name), ask)


def _reproduced(path: Path) -> object:
    from cost_models.strict import build, read_yaml
    return build(Spec, read_yaml(path), path.name)


def _translated(path: Path) -> object:
    folder = Path.cwd()
    os.chdir(path.parent)
    try:
        return translate(bytes_of("command.txt").decode("utf-8", "surrogateescape"), {})
    finally:
        os.chdir(folder)


def _configured(path: Path) -> object:
    return translate(f"vllm serve '{path.parent}'", {})


def _drawn(path: Path) -> object:
    records = _records(path.parent)
    varied(records)
    to_csv(records)
    return pareto_frame(records), heatmap_frame(records, "seed", None, "output_throughput")


def _resumed(path: Path) -> object:
    if path.exists() or path.is_symlink():
        os.replace(path, path.with_name(made()["name of the point"].decode()))
    with Store(path.parent.parent, resume=True, force=True) as store:
        return campaign({"it": SMALL}, _first, store=store)


def _reported(path: Path) -> object:
    from simulator.report import page_of
    return page_of(chapters(path.parent))


def _told(path: Path) -> object:
    """As a report tells of runs, but for the figures, which take their time."""
    with mock.patch("simulator.report.reading._pictures", return_value=()):
        return _reported(path)


def _listed_files(path: Path) -> object:
    ResultDirectory(path.parent).check(["a.json"])
    return path


def _timed(path: Path) -> object:
    return SampleFile(path, {"model": "tiny", "seed": 0}, resume=True)


def _recording(engine: str) -> dict[str, bytes]:
    """The files of a short recording, unpacked, by the ends of their names."""
    name, found = RECORDINGS[engine], {}
    for path in (GOLDEN / engine).glob(f"{name}.*"):
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        found[path.name.removeprefix(name).removesuffix(".gz")] = content
    return found


def _recordings() -> Iterator[Parser]:
    for engine in RECORDINGS:
        for end in sorted(_recording(engine)):
            yield Parser(f"recording of {engine}, {end.split('.')[1]}", f"it{end}",
                         lambda engine=engine, end=end: _recording(engine)[end],
                         lambda path, engine=engine: [each.to_dict() for each in conformance(engine, path.parent)],
                         lambda engine=engine: {f"it{each}": data for each, data in _recording(engine).items()})


def _traces() -> Iterator[Parser]:
    for name in corpus.FILES:
        yield Parser(f"trace: {name}", "t", lambda name=name: corpus.FILES[name], _trace)
    yield Parser("trace: mooncake in gzip", "t.gz", lambda: gzip.compress(corpus.MOONCAKE, mtime=0), _trace)


def _file(*parts: str) -> Callable[[], bytes]:
    return ROOT.joinpath(*parts).read_bytes


def _made(name: str) -> Callable[[], bytes]:
    return lambda: made()[name]


PARSERS: dict[str, Parser] = {parser.name: parser for parser in (
    *_traces(),
    Parser("trace spec", "s.yaml", lambda: SPEC, _generated, lambda: {"lengths.txt": b"3 4 5\n"}),
    Parser("trace spec of turns", "s.yaml", _file("traces", "specs", "mooncake-conversation-turns.yaml"), _generated),
    Parser("lengths of a trace spec", "lengths.txt", lambda: b"3 4 5\n",
           lambda path: _generated(path.with_name("s.yaml")), lambda: {"s.yaml": SPEC}),
    Parser("catalogue of public traces", "c.yaml", _file("traces", "catalogue.yaml"), catalogue_of),
    Parser("profile", "p.yaml", _file("cost_models", "profiles", "llama-3.1-8b-rtx-4090-bf16.yaml"),
           lambda path: profile_meant(str(path))),
    Parser("profile with a kernel table", "p.yaml", _file("tests", "cost_models", "table.yaml"),
           lambda path: profile_meant(str(path))),
    Parser("cached table of aiconfigurator", "batchsim/a.json", lambda: b'{"schema_version": 2}', _cached),
    Parser("shape of a model", "m.yaml", lambda: MODEL, _shaped),
    Parser("config.json of a model", "config.json", lambda: json.dumps(CONFIG).encode(), _configured),
    Parser("scenario", "s.yaml", lambda: template({"seed": 3, "knobs": {"max_num_seqs": 4}}, [], "s.yaml").encode(),
           read_scenario),
    Parser("scenario of a result", "r.json", _made("result"), read_scenario),
    Parser("result", "r.json", _made("detailed"), load),
    Parser("recorded run, batchsim", "r.json", _made("detailed"), read_run),
    Parser("recorded run, vllm bench", "r.json", lambda: corpus.FILES["vllm-bench"], read_run),
    Parser("recorded run, LLMServingSim", "r.jsonl", lambda: LINES * 3, read_run),
    Parser("baseline", "b.json", _made("baseline"), read_baseline),
    Parser("baseline, a result", "b.json", _made("result"), read_baseline),
    Parser("baseline, vllm bench", "b.json", lambda: corpus.FILES["vllm-bench"], read_baseline),
    *_recordings(),
    Parser("launch command", "command.txt", lambda: LAUNCH, _translated,
           lambda: {"launch.yaml": b"max-model-len: 9\n"}),
    Parser("settings of a launch", "launch.yaml", lambda: b"max-model-len: 9\nenable-prefix-caching: true\n",
           _translated, lambda: {"command.txt": LAUNCH}),
    Parser("list of a sweep", "l.yaml", lambda: b"- {max_num_seqs: 64, seed: 1}\n- {max_num_seqs: 32}\n", listed),
    Parser("records of a sweep", "summary.json", _made("records"), _drawn),
    Parser("point of a store", "points/0.json", _made("point"), _resumed),
    Parser("study of a report", "sweep.json", _made("account"), _reported, lambda: {"heatmap.svg": SVG}),
    Parser("figure of a report", "heatmap.svg", lambda: SVG, _reported, lambda: {"sweep.json": made()["account"]}),
    Parser("run of a report", "run.json", _made("result"), _told),
    Parser("manifest of a folder", "manifest.json",
           lambda: b'{"written_by": "batchsim", "version": "1", "sha256": {"a.json": "ab"}}', _listed_files),
    Parser("specification of a reproduction", "r.yaml",
           _file("simulator", "studies", "reproduce", "specs", "slots.yaml"), _reproduced),
    Parser("samples of a calibration", "s.jsonl", lambda: TIMED, _timed),
)}
"""By name."""
