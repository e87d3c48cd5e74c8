"""The flow label that makes a queue pair use a source port from the moment on when it becomes ready."""

from typing import NamedTuple

from ark.errors import LocalProtocolError
from ark.fabric.roce import flow_label_of_sport
from ark.integrations.roce.drivers import Driver, Label
from ark.integrations.roce.outcome import NotSteered, Outcome, Steered


class Labelled(NamedTuple):
    """What to put into ``grh.flow_label`` at RTR, and what to expect of it."""

    flow_label: int
    outcome: Outcome


def label_for(driver: Driver, source_port: int | None) -> Labelled:
    """The label for a port; 0, by which the driver decides, for none or where a label is ignored.

    Raises
    ------
    LocalProtocolError
        If RoCEv2 does not use the port.
    """
    if source_port is None:
        return Labelled(0, NotSteered("no preference"))
    try:
        flow_label = flow_label_of_sport(source_port)
    except ValueError as error:
        raise LocalProtocolError(str(error)) from None
    if driver.label is Label.IGNORED:
        return Labelled(0, NotSteered(f"{driver.name} ignores flow labels"))
    if driver.label is Label.UNPROVEN:
        # The label is given all the same: at worst the driver ignores it.
        return Labelled(flow_label, NotSteered(f"what {driver.name} makes of a flow label is not known"))
    return Labelled(flow_label, Steered(source_port, "flow label at RTR"))
