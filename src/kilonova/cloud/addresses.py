"""The guests' networks, other ones for every cloud on a machine."""

from __future__ import annotations

import dataclasses
import json

from kilonova.cloud.commands import run
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
    pool: str
    integration: str
    external: str


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
        pool=f"10.{200 + number}.0.0/16",
        integration=f"br-int{suffix}",
        external=f"br-ex{suffix}",
    )


def free_number() -> int:
    """The first number whose bridges and ranges nobody on this machine uses.

    Raises `CloudError` when all are taken.
    """
    links = {link["ifname"] for link in json.loads(run(["ip", "-json", "link", "show"]) or "[]")}
    routes = {route["dst"] for route in json.loads(run(["ip", "-json", "route", "show"]) or "[]")}
    for number in range(MOST_CLOUDS):
        wanted = plan(number)
        if not links & {wanted.integration, wanted.external} and not routes & {wanted.public, wanted.private}:
            return number
    raise CloudError("no free range for the guests' networks; stop another cloud first")
