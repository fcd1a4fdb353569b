"""A profile as the text of a YAML file, which ``read_profile`` brings back as the same profile.

What has its default is left out. It opens no file.
"""

from dataclasses import MISSING, fields, is_dataclass
from math import inf
from typing import Any

import yaml

from cost_models.profile import Profile

WIDTH, SENTENCE = 118, 30


def profile_text(profile: Profile, *comments: str) -> str:
    """The profile in YAML, lists, small sections and raw rows on one line each; every comment is a line at the top."""
    head = "".join(f"# {comment}\n" for comment in comments)
    plain = _plain(profile)
    rows = "".join(f"- {_yaml(row, yaml.SafeDumper, True, inf)}" for row in plain.pop("raw", ()))
    return head + _yaml(plain, _Dumper, None, WIDTH) + (f"raw:\n{rows}" if rows else "")


def _yaml(value: Any, dumper: type[yaml.SafeDumper], flow: bool | None, width: float) -> str:
    text: str = yaml.dump(value, Dumper=dumper, sort_keys=False, default_flow_style=flow, width=width,
                          allow_unicode=True)
    return text


class _Dumper(yaml.SafeDumper):
    """Puts sections of numbers on one line, and those with a sentence in them on several."""

    def represent_mapping(self, tag: str, mapping: Any, flow_style: bool | None = None) -> yaml.MappingNode:
        sentence = any(isinstance(value, str) and len(value) > SENTENCE for value in mapping.values())
        return super().represent_mapping(tag, mapping, False if sentence else flow_style)


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)
                if field.default is MISSING or getattr(value, field.name) != field.default}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
