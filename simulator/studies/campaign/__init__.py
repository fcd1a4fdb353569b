"""Campaign: many runs as one undertaking, on this machine or on a cluster, that can be interrupted at any moment.

Read `running` first, then `answers`, `cargo`, `store`, `kept`; `backends`, `local`, `cluster`, `on_dask` and `on_ray`
say where the runs take place.
"""

from simulator.studies.campaign.answers import Failure, Found
from simulator.studies.campaign.backends import BACKENDS, Backend
from simulator.studies.campaign.running import RETRIES, campaign
from simulator.studies.campaign.store import Store

__all__ = ["BACKENDS", "RETRIES", "Backend", "Failure", "Found", "Store", "campaign"]
