"""What the network has to carry: requests, arrivals, traces, KV-cache sizes and latency models.

May import ``ark.fabric``, ``ark.units``, ``ark.errors``, msgspec and NumPy.
"""
