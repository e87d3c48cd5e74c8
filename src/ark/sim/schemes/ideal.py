"""A perfect balance inside the fabric: all uplinks of a leaf are one pipe, and all its downlinks another."""

from ark.sim.schemes.scheme import Assignment, FixedAtArrival, Transfer


class Ideal(FixedAtArrival):
    """No paths at all; what remains are NICs, the pipes, and the fair sharing of both."""

    name = "ideal"
    pooled = True

    def arrived(self, now_ns: int, transfer: Transfer) -> Assignment:
        """At once, into the pipe."""
        return Assignment((0,), (transfer.sport,), now_ns)
