"""Step time from measured kernels: the parts of a step are looked up and added.

    layers * (linear(tokens) + attention [+ 2 * all_reduce(tokens)]) + head(sequences) + host

Between knots every part is a straight line, over two sizes one after the other. The attention of several chunks
pays the launch (the smallest cell of the grid) once. A chunk longer than the grid is charged as several that
follow one another. Where decodes and chunks share a step, the attention of each is multiplied by its factor; decodes
may have a grid of their own for such steps.

It does not know: contexts that differ within a step (the mean counts), overlap between kernels, what lies
between the knots.
"""

from dataclasses import dataclass, field
from functools import cached_property

from cost_models.base import CostModelError, StepShape, empty_step, refuse_chunks
from cost_models.kernels import Curve, DecodeGrid, KernelTable
from cost_models.linear import femtoseconds, nanoseconds
from cost_models.lines import Line, between, blend, line, neighbours
from cost_models.profile import Profile
from cost_models.profiled import Profiled
from cost_models.ranges import within


@dataclass(frozen=True)
class Table(Profiled):
    """The kernel table of one profile."""

    profile: Profile
    _decoding: dict[int, Line] = field(default_factory=dict, init=False, repr=False, compare=False)
    _beside: dict[int, Line] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.profile.fit.table is None:
            raise CostModelError(f"profile '{self.profile.name}' has no table: use its form 'regimes'")
        if self.profile.tensor_parallel_size > 1 and self.profile.fit.table.all_reduce is None:
            raise CostModelError(f"profile '{self.profile.name}': a table for several GPUs needs 'all_reduce'")

    def time(self, shape: StepShape) -> int:
        """Duration of one step in ns."""
        decodes, context, chunks, _, _ = shape
        if chunks:
            return nanoseconds(self._chunked_fs(decodes, context, chunks))
        return (self._decoding.get(decodes) or self._decode_line(decodes)).time(context)

    def decode_times(self, shape: StepShape, k: int, growth: int | None = None) -> list[int]:
        """Durations in ns of ``k`` decode steps in a row, without ``k`` calls."""
        refuse_chunks(shape)
        decodes = shape.decodes
        growth = decodes if growth is None else growth
        return (self._decoding.get(decodes) or self._decode_line(decodes)).times(shape.context, growth, k)

    def in_range(self, shape: StepShape) -> bool:
        """Whether the profile's bounds hold, or, where it states none, the step is no larger than the grids."""
        if self.bounds is not None:
            return within(self.bounds, shape)
        table, tokens = self._table, shape.decodes + sum(new for new, _ in shape.chunks)
        grid, prefill = table.decode_attention, table.prefill_attention
        return (tokens <= table.linear.at[-1] and shape.decodes <= grid.sequences[-1]
                and shape.context <= shape.decodes * grid.context[-1]
                and all(new <= prefill.tokens[-1] and prior <= prefill.prior[-1] for new, prior in shape.chunks))

    def _decode_line(self, decodes: int) -> Line:
        """A decode-only step of so many sequences by their total context; worked out once for each number."""
        if decodes < 1:
            raise empty_step()
        rest = self._rest_fs(decodes, decodes)
        at, attention, slope = _attention_line(self._table.decode_attention, self._decode_rows, decodes)
        found = Line(at, [rest + self._layers * fs for fs in attention], [self._layers * fs for fs in slope])
        return self._decoding.setdefault(decodes, found)

    def _chunked_fs(self, decodes: int, context: int, chunks: tuple[tuple[int, int], ...]) -> int:
        tokens = decodes
        for new, _ in chunks:
            if new < 1:
                raise empty_step()
            tokens += new
        attention = sum([self._chunk_fs(new, prior) for new, prior in chunks]) - (len(chunks) - 1) * self._launch_fs
        if decodes:
            beside = (self._beside.get(decodes) or self._beside_line(decodes)).value(context)
            mixed = self._table.mixed
            attention = round(mixed.prefill_attention * attention + mixed.decode_attention * beside)
        return self._rest_fs(tokens, decodes + len(chunks)) + self._layers * attention

    def _rest_fs(self, tokens: int, sequences: int) -> int:
        """All but attention."""
        layer = self._linear.value(tokens) + (2 * self._all_reduce.value(tokens) if self._all_reduce else 0)
        host = self._host_fs + sequences * self._host_seq_fs
        return self._layers * layer + self._head.value(sequences) + host

    def _beside_line(self, decodes: int) -> Line:
        """Attention of one layer next to a chunk, by total context; worked out once for each number of sequences."""
        grid = self._table.beside_chunks or self._table.decode_attention
        return self._beside.setdefault(decodes, _attention_line(grid, self._beside_rows, decodes))

    def _chunk_fs(self, new: int, prior: int) -> int:
        """Attention of one layer for one chunk, in fs."""
        knots = self._table.prefill_attention.tokens
        whole, total = knots[-1], 0
        while new > whole:
            total += self._prefill_lines[-1].value(prior) - self._launch_fs
            new, prior = new - whole, prior + whole
        low, high = neighbours(knots, new)
        here = self._prefill_lines[low].value(prior)
        if low == high:
            return total + here
        return total + between(here, self._prefill_lines[high].value(prior), new, knots[low], knots[high])

    # The table in whole femtoseconds, worked out once.

    @cached_property
    def _table(self) -> KernelTable:
        assert self.profile.fit.table is not None
        return self.profile.fit.table

    @cached_property
    def _layers(self) -> int:
        return self.profile.model_shape.layers

    @cached_property
    def _linear(self) -> Line:
        return _line(self._table.linear)

    @cached_property
    def _head(self) -> Line:
        return _line(self._table.head)

    @cached_property
    def _all_reduce(self) -> Line | None:
        curve = self._table.all_reduce
        return _line(curve) if curve and self.profile.tensor_parallel_size > 1 else None

    @cached_property
    def _decode_rows(self) -> list[list[int]]:
        return _rows(self._table.decode_attention)

    @cached_property
    def _beside_rows(self) -> list[list[int]]:
        return _rows(self._table.beside_chunks) if self._table.beside_chunks else self._decode_rows

    @cached_property
    def _prefill_lines(self) -> list[Line]:
        grid = self._table.prefill_attention
        return [line(grid.prior, [_fs(us) for us in row]) for row in grid.us]

    @cached_property
    def _launch_fs(self) -> int:
        return min(_fs(us) for row in self._table.prefill_attention.us for us in row)

    @cached_property
    def _host_fs(self) -> int:
        return femtoseconds(self.profile.host.h0_ms * 1e-3)

    @cached_property
    def _host_seq_fs(self) -> int:
        return femtoseconds(self.profile.host.h1_ms * 1e-3)


def _attention_line(grid: DecodeGrid, rows: list[list[int]], decodes: int) -> Line:
    """Attention of one layer for so many sequences by their total context, in fs."""
    low, high = neighbours(grid.sequences, decodes)
    row = rows[low]
    if low != high:
        row = blend(row, rows[high], decodes, grid.sequences[low], grid.sequences[high])
    return line([decodes * each for each in grid.context], row)


def _rows(grid: DecodeGrid) -> list[list[int]]:
    return [[_fs(us) for us in row] for row in grid.us]


def _line(curve: Curve) -> Line:
    return line(curve.at, [_fs(us) for us in curve.us])


def _fs(us: float) -> int:
    return femtoseconds(us * 1e-6)
