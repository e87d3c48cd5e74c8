"""Make RoCE queue pairs take the path that ARK chose: by their flow label, or live where that is safe.

The side that *sends* the bytes is steered; with RDMA READ that is the one that is read from. Where nothing
can be steered the answer is ``NotSteered`` with the reason, and the queue pair works as it did. Imports of
ARK only ``ark.fabric.roce``, ``ark.client``, ``ark.errors`` and ``ark.units``. ``on_pyverbs`` and
``on_ibverbs`` are for those two bindings, which the caller has.
"""

from ark.integrations.roce.device import driver_of
from ark.integrations.roce.drain import Drainable, DrainAndMove, Seen, State, Step, drain_and_move
from ark.integrations.roce.drivers import BY_NAME, DRIVERS, Driver, Label, Move, VendorCall
from ark.integrations.roce.label import Labelled, label_for
from ark.integrations.roce.lanes import PathQueuePairs
from ark.integrations.roce.outcome import NotSteered, Outcome, Steered
from ark.integrations.roce.vendor import modify_udp_sport

__all__ = [
    "BY_NAME",
    "DRIVERS",
    "DrainAndMove",
    "Drainable",
    "Driver",
    "Label",
    "Labelled",
    "Move",
    "NotSteered",
    "Outcome",
    "PathQueuePairs",
    "Seen",
    "State",
    "Steered",
    "Step",
    "VendorCall",
    "drain_and_move",
    "driver_of",
    "label_for",
    "modify_udp_sport",
]
