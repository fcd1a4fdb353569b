"""How sure a figure is: intervals of means, shares and quantiles, paired differences, and where a warm-up ends.

They know no simulation: only values, and how sure one wants to be. Values of one run depend on each other (a request
waits because those before it did), so an interval of one run comes from `batch_means`, and the interval of several
runs with seeds of their own from `of_means`. The formulas are those of Law, Simulation Modeling and Analysis (5th
edition, chapters 4, 9 and 10), where no other source is named.
"""

from simulator.statistics.interval import LEVEL, Interval
from simulator.statistics.means import batch_means, batch_quantile, of_means, paired
from simulator.statistics.orders import quantile_interval
from simulator.statistics.shares import share_interval
from simulator.statistics.warmup import warm_up

__all__ = ["LEVEL", "Interval", "batch_means", "batch_quantile", "of_means", "paired", "quantile_interval",
           "share_interval", "warm_up"]
