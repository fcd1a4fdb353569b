"""Campaign: many runs as one undertaking, on this machine or on a cluster, that can be interrupted at any moment.

Read `running` first, then `answers`, `backends`, `cluster`, `cargo`, `store`.
"""

from simulator.studies.campaign.answers import Failure, Found
from simulator.studies.campaign.backends import BACKENDS, Backend
from simulator.studies.campaign.running import RETRIES, campaign
from simulator.studies.campaign.store import Store

__all__ = ["BACKENDS", "RETRIES", "Backend", "Failure", "Found", "Store", "campaign"]
