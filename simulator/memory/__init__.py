"""How KV cache is held: contiguous reservations or paged blocks. Policies only ask; read `base` first."""

from simulator.memory.ahead import PagedAhead
from simulator.memory.base import UNLIMITED, Memory
from simulator.memory.contiguous import Contiguous
from simulator.memory.paged import Paged

__all__ = ["UNLIMITED", "Contiguous", "Memory", "Paged", "PagedAhead"]
