"""Step time from specifications only, for where nothing was measured.

A step reads the weights once and multiplies them with every computed token: the slower of the two, memory or
arithmetic, sets the time of the linear part. Attention comes on top: that of the decodes over their context
and that of each chunk, again the slower of reading and arithmetic. Then all-reduces between GPUs, and the host.

Assumed, and knobs: kernels reach 0.8 of the peak bandwidth and 0.6 of the peak FLOP/s; the host takes 1.5 ms
a step. Several GPUs divide weights, heads and arithmetic, and with more GPUs than KV heads each holds a copy of one.
They pay two ring all-reduces a layer, each 20 us plus its bytes over 0.65 of the link: in the profiles of Vidur
(microsoft/vidur at 7d47513, MIT) 1 to 67 MB reach 0.55 of NVLink on a DGX A100 and 0.75 on a DGX H100, and small
ones take 20 to 50 us on the one and 28 to 40 us on the other, launched one by one.

It does not know: tile steps of matrix kernels, launch gaps, sampling, activations and KV written, overlap
between the parts. Attention is computed in bf16 whatever the KV dtype; the output head stays in bf16 and sees
one row a sequence.
"""

from dataclasses import dataclass
from functools import cached_property

from cost_models.base import CostModelError, StepShape, choose, empty_step
from cost_models.linear import LinearDecode, femtoseconds, nanoseconds
from cost_models.shapes import BYTES, GpuSpec, ModelSpec


@dataclass(frozen=True)
class Roofline(LinearDecode):
    """max(memory, arithmetic) for the linear part, plus attention, all-reduces and host time.

    >>> from cost_models import gpu_spec, model_spec
    >>> roofline = Roofline(model_spec("llama-3.1-8b"), gpu_spec("h100-80"))
    >>> roofline.time(StepShape(1, 1000)), roofline.time(StepShape(64, 64_000))
    (7149598, 10230768)
    """

    model: ModelSpec
    gpu: GpuSpec
    dtype: str = "bf16"
    kv_dtype: str = "bf16"
    tensor_parallel_size: int = 1
    bandwidth_efficiency: float = 0.8
    """Reached share of the peak memory bandwidth."""
    flops_efficiency: float = 0.6
    """Reached share of the peak FLOP/s."""
    link_efficiency: float = 0.65
    """Reached share of the link bandwidth."""
    all_reduce_us: float = 20.0
    """Latency of one all-reduce; there are none on one GPU."""
    host_ms: float = 1.5
    host_per_seq_ms: float = 0.0
    """Host time for each sequence in the step, prompt chunks included."""

    def __post_init__(self) -> None:
        choose("dtype", self.dtype, BYTES)
        choose("kv_dtype", self.kv_dtype, BYTES)
        self.model.check_layout(self.tensor_parallel_size)
        for knob in ("bandwidth_efficiency", "flops_efficiency", "link_efficiency"):
            if not 0 < getattr(self, knob) <= 1:
                raise CostModelError(f"{knob} must be above 0 and at most 1, got {getattr(self, knob)!r}")
        for knob in ("all_reduce_us", "host_ms", "host_per_seq_ms"):
            if not 0 <= getattr(self, knob) < float("inf"):
                raise CostModelError(f"{knob} must be a number of at least 0, got {getattr(self, knob)!r}")

    @property
    def name(self) -> str:
        """``roofline``."""
        return "roofline"

    @property
    def origin(self) -> str:
        """Specifications and the assumed efficiencies, in one line."""
        return (
            f"specifications of {self.model.name} on {self.tensor_parallel_size} x {self.gpu.name} "
            f"({self.dtype}, KV {self.kv_dtype}); assumed: {self.bandwidth_efficiency:g} of peak bandwidth, "
            f"{self.flops_efficiency:g} of peak FLOP/s, host {self.host_ms:g} ms a step"
        )

    def decode_fs(self, decodes: int) -> int:
        """Linear part, all-reduces and host of a decode-only step, in fs."""
        arithmetic = decodes * self._row_fs
        weights = self._weights_fs
        linear = arithmetic if arithmetic > weights else weights
        return linear + decodes * self._row_extra_fs + self._fixed_fs

    def chunked_fs(self, decodes: int, context: int, chunks: tuple[tuple[int, int], ...]) -> int:
        """A step with prompt chunks, in fs; decodes beside them share the one reading of the weights."""
        tokens, attention = decodes, context * self.context_fs
        for new, prior in chunks:
            if new < 1:
                raise empty_step()
            tokens += new
            arithmetic = new * (new + 2 * prior) * self._square_fs
            attention += max(arithmetic, (prior + new) * self._read_fs)
        sequences = decodes + len(chunks)
        linear = max(self._weights_fs, tokens * self._body_fs + sequences * self._head_fs)
        extra = self._fixed_fs + tokens * self._link_fs + sequences * self._host_seq_fs
        return linear + attention + extra

    def floor(self, shape: StepShape) -> int:
        """What no kernel beats, in ns: all bytes at peak bandwidth or all FLOPs at peak; no host, no link."""
        decodes, context, chunks, _, _ = shape
        if decodes <= 0 and not chunks:
            raise empty_step()
        tokens = decodes + sum(new for new, _ in chunks)
        read = context + sum(prior + new for new, prior in chunks)
        squares = 2 * context + sum(new * (new + 2 * prior) for new, prior in chunks)
        model, gpu = self._laid_out, self.gpu
        moved = model.read_bytes(self.dtype) + read * model.kv_bytes_per_token(self.kv_dtype)
        other = model.head_parameters * (decodes + len(chunks)) * 2 + squares * self._square_flops
        arithmetic = model.body_parameters * tokens * 2 / gpu.flops(self.dtype) + other / gpu.bf16_flops
        slower = max(moved / gpu.bandwidth, arithmetic)
        return nanoseconds(femtoseconds(slower / self.tensor_parallel_size))

    # What one unit costs, in fs on one rank, worked out once.

    @cached_property
    def _laid_out(self) -> ModelSpec:
        return self.model.laid_out(self.tensor_parallel_size)

    @cached_property
    def context_fs(self) -> int:
        """One token of context of a decode: read its keys and values, or multiply with them."""
        return max(self._read_fs, 2 * self._square_fs)

    @cached_property
    def _weights_fs(self) -> int:
        return self._moved(self._laid_out.read_bytes(self.dtype))

    @cached_property
    def _read_fs(self) -> int:
        return self._moved(self._laid_out.kv_bytes_per_token(self.kv_dtype))

    @cached_property
    def _body_fs(self) -> int:
        return self._computed(2 * self._laid_out.body_parameters, self.gpu.flops(self.dtype))

    @cached_property
    def _head_fs(self) -> int:
        return self._computed(2 * self.model.head_parameters, self.gpu.bf16_flops)

    @cached_property
    def _row_fs(self) -> int:
        return self._body_fs + self._head_fs

    @cached_property
    def _square_fs(self) -> int:
        return self._computed(self._square_flops, self.gpu.bf16_flops)

    @property
    def _square_flops(self) -> int:
        # One query over c tokens takes 4 * width * c FLOPs; a causal chunk has half of its square in such pairs.
        return 2 * self.model.layers * self.model.heads * self.model.head_dim

    @cached_property
    def _link_fs(self) -> int:
        ranks = self.tensor_parallel_size
        sent = self._all_reduces * 2 * (ranks - 1) / ranks * self.model.hidden * BYTES["bf16"]
        return femtoseconds(sent / (self.gpu.link_bandwidth * self.link_efficiency))

    @cached_property
    def _fixed_fs(self) -> int:
        return femtoseconds(self._all_reduces * self.all_reduce_us * 1e-6 + self.host_ms * 1e-3)

    @cached_property
    def _host_seq_fs(self) -> int:
        return femtoseconds(self.host_per_seq_ms * 1e-3)

    @cached_property
    def _row_extra_fs(self) -> int:
        return self._link_fs + self._host_seq_fs

    @property
    def _all_reduces(self) -> int:
        return 2 * self.model.layers if self.tensor_parallel_size > 1 else 0

    def _moved(self, size: float) -> int:
        rate = self.gpu.bandwidth * self.bandwidth_efficiency * self.tensor_parallel_size
        return femtoseconds(size / rate)

    def _computed(self, flops: float, peak: float) -> int:
        return femtoseconds(flops / (peak * self.flops_efficiency * self.tensor_parallel_size))
