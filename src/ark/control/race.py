"""Who must decide again when two transfers picked the same without seeing each other (rule 8).

Every assignment has the key (t, host, flow), so all hosts order any two alike, and the smaller one stays.
Only a row that was *not in the table* when a transfer chose can make it decide again. A row that is new to
the table is one, for every transfer that chose before; so nobody records what it had seen. (A row that
comes back after the lease of its host had ended counts as new: at worst one look more, and moves are
bounded.)
"""

from ark.control.decision import Transfer
from ark.control.policy import Chooser
from ark.control.rows import Row


def lost_to(rival: Row, assigned: dict[int, Transfer], chooser: Chooser) -> list[Transfer]:
    """Which of our transfers lose against a row that has just become known.

    Parameters
    ----------
    assigned
        Our transfers in the order of their assignments: only those newer than ``rival`` are looked at, so a
        row that is not late costs the same whatever the number of our transfers.
    """
    key = rival.assignment
    losers = []
    for transfer in reversed(assigned.values()):
        own = transfer.row
        assert own is not None
        if own.stamp < key.stamp:
            break
        if key < own.assignment and chooser.contests(own, rival):
            losers.append(transfer)
    losers.reverse()
    return losers
