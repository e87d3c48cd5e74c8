"""What one host knows of all reservations, put together for a policy: table, ledgers and chooser."""

from typing import Literal, NamedTuple

from ark.control.choice import LeastLoaded
from ark.control.geometry import Geometry, PathSets
from ark.control.load import LinkLoads
from ark.control.paper import Claims, FirstFree, LiteralClaims
from ark.control.policy import Chooser, Policy
from ark.control.table import ROWS_MAX, Table

Release = Literal["owner", "any"]
"""Who releases a path under ``policy="paper"``: its owner, or the completion of any transfer (simulators)."""


class View(NamedTuple):
    """A table with what is kept from it, and the chooser that reads that.

    ``loads`` is kept under every policy unless left out; ``claims`` is None under ``policy="ark"``.
    """

    paths: PathSets
    table: Table
    chooser: Chooser
    loads: LinkLoads | None
    claims: Claims | LiteralClaims | None


def view(
    policy: Policy,
    geometry: Geometry,
    *,
    release: Release = "owner",
    measured: bool = True,
    rows_max: int = ROWS_MAX,
) -> View:
    """An empty table for a policy over a network.

    Parameters
    ----------
    release
        ``"any"`` is Algorithm 1 as printed; only for simulators without lag.
    measured
        Keep link loads also where the policy does not need them (for metrics).
    """
    paths = PathSets(geometry)
    if policy.name == "ark":
        loads = LinkLoads(paths)
        chooser = LeastLoaded(paths, loads, stripes=policy.stripes)
        return View(paths, Table(paths, loads, rows_max=rows_max), chooser, loads, None)
    claims = Claims() if release == "owner" else LiteralClaims()
    first_free = FirstFree(paths, claims)
    if not measured:
        return View(paths, Table(paths, claims, rows_max=rows_max), first_free, None, claims)
    measure = LinkLoads(paths)
    return View(paths, Table(paths, claims, measure, rows_max=rows_max), first_free, measure, claims)
