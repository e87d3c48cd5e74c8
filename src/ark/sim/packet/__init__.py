"""The packet-level engine: RoCEv2 packet by packet, with DCQCN, ECN and PFC."""
