"""What an application has acquired, as it prints."""

from ark.client.held import Laned
from ark.client.messages import Lane
from ark.client.session import Assignment, Session


def test_lanes_print_their_ports_or_why_there_are_none() -> None:
    session = Session()
    given = Assignment((Lane(0, 49152, 1), Lane(2, 50000, 2)), "lanes", "", "10.0.0.1", "10.0.0.2")
    assert repr(Laned(session, 1, given)) == "<lanes 0:49152 2:50000>"
    none = Assignment((), "none", "no agent answers", "", "")
    assert repr(Laned(session, 1, none)) == "<lanes none (no agent answers)>"
