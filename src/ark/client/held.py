"""What an application has acquired, as it sees it: where a transfer goes, or one lane for each path."""

from collections.abc import Iterator

from ark.client.messages import Lane
from ark.client.session import Assignment, Session


class Held:
    """Something acquired; without lanes there is no preference, and ``reason`` says why."""

    def __init__(self, session: Session, handle: int, given: Assignment) -> None:
        self._session = session
        self._handle = handle
        self.assignment = given

    @property
    def reason(self) -> str:
        """Why there is no preference; empty where there is one."""
        return self.assignment.reason

    @property
    def source_address(self) -> str | None:
        """Address of the NIC that is to send."""
        return self.assignment.source or None

    @property
    def target_address(self) -> str | None:
        """Address of the NIC that is to receive."""
        return self.assignment.target or None


class Steered(Held):
    """One transfer and where it should go."""

    def __repr__(self) -> str:
        why = f" ({self.reason})" if self.reason else ""
        return f"<transfer path={self.path} source_port={self.source_port}{why}>"

    @property
    def lanes(self) -> tuple[Lane, ...]:
        """One lane a stripe; none without a preference."""
        return self.assignment.lanes

    @property
    def path(self) -> int | None:
        """Number of the path of the first stripe; None for "no preference"."""
        return self.lanes[0].path if self.lanes else None

    @property
    def source_port(self) -> int | None:
        """The source port that leads there; None for any."""
        return (self.lanes[0].source_port or None) if self.lanes else None

    @property
    def flow_label(self) -> int | None:
        """The flow label that makes a RoCE driver use that source port; None for any."""
        return (self.lanes[0].flow_label or None) if self.lanes else None

    @property
    def kind(self) -> str:
        """How the path was chosen: steered, fallback, blind, unmanaged, or none."""
        return self.assignment.kind


class Laned(Held):
    """One lane a path, for connections that are made ahead and used whenever a transfer gets that path."""

    def __repr__(self) -> str:
        ports = " ".join(f"{path}:{port}" for path, port in self.source_ports.items())
        return f"<lanes {ports or f'none ({self.reason})'}>"

    def __len__(self) -> int:
        return len(self.assignment.lanes)

    def __iter__(self) -> Iterator[Lane]:
        return iter(self.assignment.lanes)

    def __getitem__(self, path: int) -> Lane:
        """The lane of a path; ``KeyError`` where there is none."""
        for lane in self:
            if lane.path == path:
                return lane
        raise KeyError(path)

    @property
    def source_ports(self) -> dict[int, int]:
        """Source port by path."""
        return {lane.path: lane.source_port for lane in self}
