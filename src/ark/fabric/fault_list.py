"""Faults of one input, gathered until there are enough of them."""

from typing import Final

from ark.errors import ConfigError, Fault

FAULTS_MAX: Final = 200
"""After so many faults the rest of the input is not looked at: the first ones say what is wrong."""


class FaultList:
    """The faults found so far; ``raise_if_any`` ends the reading."""

    def __init__(self) -> None:
        self._faults: dict[Fault | str, None] = {}

    def add(self, where: str, what: str) -> None:
        """Note one fault, once; ``where`` is empty for one of the input as a whole.

        Raises
        ------
        ConfigError
            With all faults, if this was the last that is looked for.
        """
        self._faults[Fault(where, what) if where else what] = None
        if len(self._faults) >= FAULTS_MAX:
            self.raise_if_any()

    def take(self, error: ConfigError) -> None:
        """Note the faults of an error that came from elsewhere."""
        for fault in error.faults:
            if isinstance(fault, Fault):
                self.add(fault.where, fault.what)
            else:
                self.add("", fault)

    def raise_if_any(self) -> None:
        """Raise a ``ConfigError`` with all faults, if there are some."""
        if self._faults:
            raise ConfigError(*self._faults)
