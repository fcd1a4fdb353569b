"""From a launch command of an engine to a scenario: `vllm serve ...`, `python -m sglang.launch_server ...`,
`text-generation-launcher ...`, `trtllm-serve ...`.

`engine` says what a table of flags is; `vllm`, `sglang`, `tgi` and `tensorrt_llm` are those tables. `words` takes a
line apart, `models` knows published models, and `translation` puts it together.
"""

from __future__ import annotations

from simulator.launching.translation import ENGINES, Launch, translate

__all__ = ["ENGINES", "Launch", "translate"]
