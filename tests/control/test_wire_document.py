"""The worked datagram of ``docs/reference/wire.md`` is what this code sends, and so are its bounds."""

import re
from pathlib import Path

from ark.control import lease, outbox, own_id, peer, peer_rows, repair, replica, stream, wire
from ark.control.wire import Beat, Drop, Key, Keys, Put, encode_message, host_id, open_datagram, seal

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "wire.md").read_text(encoding="utf-8")
KEY = Key(1, b"an example, not a secret to use!")


def worked() -> bytes:
    put = Put(7, 1, (2,), 0, 1, 131_072_000, 1_790_000_000_000_000_000, fallback=False, moves=0)
    part = encode_message(put)
    parts = [part, encode_message(Drop(5)), encode_message(Beat(1, stream.mark(42, part)))]
    return seal(KEY, bytes(range(16)), host_id("h0"), 1_789_999_999_000_000_000, "", 100, 42, parts)


def test_the_worked_datagram_is_what_is_sent() -> None:
    blocks = re.findall(r"```text\n(.*?)```", PAGE, flags=re.DOTALL)
    assert [bytes.fromhex(block) for block in blocks] == [worked()]
    assert open_datagram(worked(), Keys(KEY)).first_seq == 42


def test_every_bound_of_the_page_is_the_one_in_the_code() -> None:
    parts = (wire, stream, repair, peer, peer_rows, replica, own_id, lease, outbox)
    modules = {part.__name__.rpartition(".")[2]: part for part in parts}
    rows = re.findall(r"^\| `(\w+)\.(\w+)` \| ([\d,]+) \|", PAGE, flags=re.MULTILINE)
    assert len(rows) >= 25
    for module, name, value in rows:
        assert getattr(modules[module], name) == int(value.replace(",", "")), (module, name)
