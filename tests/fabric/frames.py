"""Sends frames into a router in the present network namespace and says where each leaves.

A script for ``linux_router``: reads one JSON object from standard input, writes the number of the next hop
of each packet as a JSON list. Runs as a script of its own, because a process can be in one namespace only.
"""

import json
import select
import socket
import struct
import sys
from ipaddress import ip_address

ETH_P_ALL = 3
BATCH = 32
PATIENCE_S = 5.0


def main() -> None:
    asked = json.load(sys.stdin)
    sender = packet_socket("in1")
    listening = [packet_socket(f"far{k}") for k in range(asked["next_hops"])]
    receivers = {receiver.fileno(): (k, receiver) for k, receiver in enumerate(listening)}
    router_mac = bytes.fromhex(asked["router_mac"].replace(":", ""))
    left: dict[int, int] = {}
    packets = asked["packets"]
    for start in range(0, len(packets), BATCH):
        batch = range(start, min(start + BATCH, len(packets)))
        for number in batch:
            sender.send(router_mac + bytes.fromhex("020000000300") + ip_packet(number, *packets[number]))
        while any(number not in left for number in batch):
            ready, _, _ = select.select(list(receivers), [], [], PATIENCE_S)
            if not ready:
                raise TimeoutError(f"{[n for n in batch if n not in left]} were not forwarded")
            for descriptor in ready:
                hop, receiver = receivers[descriptor]
                frame = receiver.recv(2048)
                if frame[-8:-4] == b"ark:":
                    left[struct.unpack("!I", frame[-4:])[0]] = hop
    json.dump([left[number] for number in range(len(packets))], sys.stdout)


def packet_socket(interface: str) -> socket.socket:
    made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    made.bind((interface, 0))
    return made


def ip_packet(number: int, src: str, dst: str, proto: int, sport: int, dport: int, flow_label: int) -> bytes:
    """Ethernet type and IP packet; ``number`` stands at the end of the payload."""
    payload = b"ark:" + struct.pack("!I", number)
    if proto == 17:
        transport = struct.pack("!HHHH", sport, dport, 8 + len(payload), 0) + payload
    else:
        transport = struct.pack("!HHIIBBHHH", sport, dport, 0, 0, 5 << 4, 2, 1024, 0, 0) + payload
    source, target = ip_address(src).packed, ip_address(dst).packed
    if len(source) == 16:
        header = struct.pack("!IHBB", 6 << 28 | flow_label, len(transport), proto, 64)
        return b"\x86\xdd" + header + source + target + transport
    length = 20 + len(transport)
    header = struct.pack("!BBHHHBBH", 0x45, 0, length, 0, 0, 64, proto, 0) + source + target
    total = sum(struct.unpack("!10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    total = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    return b"\x08\x00" + header[:10] + struct.pack("!H", total) + header[12:] + transport


if __name__ == "__main__":
    main()
