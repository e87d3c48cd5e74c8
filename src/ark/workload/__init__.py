"""What the network has to carry: requests, arrivals, traces, KV-cache sizes and latency models.

May import ``ark.fabric``, ``ark.units``, ``ark.errors``, msgspec and NumPy; scikit-learn, lazily, for
profiles in Vidur's format.
"""

from ark.workload.flow_file import read_flows, write_flows
from ark.workload.flows import Flows, make_flows
from ark.workload.kv import KvModel, kv_model, kv_models
from ark.workload.latency import LATENCY_DEFAULT, LatencyModel, latency_model, latency_names
from ark.workload.load import offered_load, qps_for_load
from ark.workload.paper import paper_requests
from ark.workload.presets import preset_names, preset_qps, preset_requests
from ark.workload.requests import Requests
from ark.workload.traces import FORMATS, load_requests

__all__ = [
    "FORMATS",
    "LATENCY_DEFAULT",
    "Flows",
    "KvModel",
    "LatencyModel",
    "Requests",
    "kv_model",
    "kv_models",
    "latency_model",
    "latency_names",
    "load_requests",
    "make_flows",
    "offered_load",
    "paper_requests",
    "preset_names",
    "preset_qps",
    "preset_requests",
    "qps_for_load",
    "read_flows",
    "write_flows",
]
