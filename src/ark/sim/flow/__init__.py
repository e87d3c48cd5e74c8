"""The flow-level engine: transfers as fluids that share links max-min fairly.

Refuses to know about packets, queues and congestion control; ``ark.sim.packet`` does.
"""
