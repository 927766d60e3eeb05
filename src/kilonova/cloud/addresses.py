"""The guests' networks, other ones for every cloud on a machine."""

from __future__ import annotations

import dataclasses
import ipaddress
import socket
from pathlib import Path

from kilonova.cloud.errors import CloudError

MOST_CLOUDS = 16


@dataclasses.dataclass(frozen=True)
class Plan:
    """IPv4 ranges and addresses, and the names of the two bridges."""

    public: str
    host_address: str
    router_address: str
    floating_first: str
    floating_last: str
    private: str
    private_host: str
    """This machine's address on the guests' network."""
    pool: str
    integration: str
    external: str
    host_device: str


def plan(number: int) -> Plan:
    public = f"172.24.{4 + number}"
    suffix = str(number) if number else ""
    return Plan(
        public=f"{public}.0/24",
        host_address=f"{public}.1",
        router_address=f"{public}.2",
        floating_first=f"{public}.10",
        floating_last=f"{public}.250",
        private=f"10.10.{16 * number}.0/20",
        private_host=f"10.10.{16 * number + 15}.254",
        pool=f"10.{200 + number}.0.0/16",
        integration=f"br-int{suffix}",
        external=f"br-ex{suffix}",
        host_device=f"kn{number}-host",
    )


def free_number() -> int:
    """The first number whose bridges and ranges nobody on this machine uses.

    Raises `CloudError` when all are taken.
    """
    taken, links = routes(), {name for _, name in socket.if_nameindex()}
    for number in range(MOST_CLOUDS):
        wanted = plan(number)
        if not links & {wanted.integration, wanted.external} and not taken & {wanted.public, wanted.private}:
            return number
    raise CloudError("no free range for the guests' networks; stop another cloud first")


def routes(table: Path = Path("/proc/net/route")) -> set[str]:
    """IPv4 networks to which this machine has a route. The kernel's table shows them as little-endian numbers."""
    found = set()
    for line in table.read_text().splitlines()[1:]:
        fields = line.split()
        network, mask = (ipaddress.IPv4Address(int(fields[n], 16).to_bytes(4, "little")) for n in (1, 7))
        found.add(str(ipaddress.IPv4Network(f"{network}/{mask}")))
    return found
