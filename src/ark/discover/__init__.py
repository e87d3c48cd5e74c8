"""Learn on a live fabric which source ports lead to which path, and notice when that changes.

The machines that decide what to probe are pure; ``ark.discover.live`` alone touches sockets and the clock.
"""
