import pytest
from tests.control.networks import Clos

from ark.control.choice import LeastLoaded
from ark.control.paper import Claims, FirstFree, LiteralClaims
from ark.control.policy import Policy
from ark.control.rows import Row, State
from ark.control.view import view

ROW = Row(1, 0, 1, 0, State.ACTIVE, (1,), 0, 1, 5, 1)


@pytest.mark.parametrize("name", ["ark", "paper"])
def test_what_is_kept_follows_the_table(name: str) -> None:
    known = view(Policy(name=name, line_rate_bps=1), Clos(2, 2))  # type: ignore[arg-type]
    known.table.put(ROW)
    known.table.check()
    assert known.loads is not None
    assert sum(known.loads.size_bytes) == 10
    assert isinstance(known.chooser, LeastLoaded if name == "ark" else FirstFree)
    if name == "paper":
        assert isinstance(known.claims, Claims)
        assert known.claims.owner(1) == ROW.assignment
    else:
        assert known.claims is None


def test_the_paper_needs_no_loads() -> None:
    known = view(Policy(name="paper", line_rate_bps=1), Clos(2, 2), release="any", measured=False)
    assert known.loads is None
    assert isinstance(known.claims, LiteralClaims)
