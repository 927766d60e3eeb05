"""The first server: proof that the cloud works, and an example for its user."""

from __future__ import annotations

import base64
import dataclasses
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kilonova.cloud.commands import ok, run
from kilonova.cloud.errors import CloudError
from kilonova.cloud.rest import Rest, poll
from kilonova.cloud.site import Site

NAME = "first"
KEY = "cloud"
MICROVERSION = {"OpenStack-API-Version": "compute 2.96"}
STAMP = re.compile(r"guest: \[([0-9]+\.[0-9]+)\] ")
OUT_OF_ORDER = 0.5
"""Seconds by which lines of two programs of a guest may overtake each other."""

USER_DATA = "#!/bin/sh\necho hello from user data\n"


@dataclasses.dataclass
class FirstServer:
    """Boots it in project demo and waits for what shows that it is well."""

    site: Site

    @property
    def key_file(self) -> Path:
        return self.site.root / "cloud.key"

    @property
    def real(self) -> bool:
        return self.site.settings.driver == "libvirt"

    def url(self, path: str) -> str:
        return self.site.url("compute", f"/v2.1{path}")

    def boot(self, within: float = 240) -> None:
        """Create it unless it is there, and wait until it is ACTIVE."""
        demo = Rest(self.site, "demo", "demo")
        self.ensure_key(demo)
        server = self.find(demo)
        if server is not None and server["status"] == "ERROR":
            self.remove(demo, server["id"])
            server = None
        server = server or self.create(demo)
        end = time.monotonic() + within
        while server["status"] != "ACTIVE":
            if server["status"] == "ERROR":
                raise CloudError(f"the first server is in ERROR: {server.get('fault', {}).get('message')}")
            if time.monotonic() > end:
                raise CloudError(f"the first server is still in {server['status']} after {within:.0f} s")
            time.sleep(0.5)
            server = demo.get(self.url(f"/servers/{server['id']}"), **MICROVERSION)["server"]

    def remove(self, demo: Rest, server: str) -> None:
        """Away with one that failed, to try again."""
        demo.call("DELETE", self.url(f"/servers/{server}"))
        poll("the failed first server is not deleted", lambda: self.find(demo) is None, 60)

    def ensure_key(self, demo: Rest) -> None:
        if not self.real:
            return
        if not self.key_file.exists():
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "cloud", "-f", self.key_file])
        present = {item["keypair"]["name"] for item in demo.get(self.url("/os-keypairs"))["keypairs"]}
        if KEY not in present:
            public = self.key_file.with_suffix(".key.pub").read_text().strip()
            body = {"keypair": {"name": KEY, "public_key": public, "type": "ssh"}}
            demo.post(self.url("/os-keypairs"), body, MICROVERSION)

    def find(self, demo: Rest) -> Any:
        servers = demo.get(self.url(f"/servers/detail?name=^{NAME}$"), **MICROVERSION)["servers"]
        return servers[0] if servers else None

    def create(self, demo: Rest) -> Any:
        images = demo.get(self.site.url("glance", "/v2/images?name=guest"))["images"]
        networks = demo.get(self.site.url("neutron", "/v2.0/networks?name=private"))["networks"]
        body: dict[str, Any] = {
            "name": NAME,
            "imageRef": images[0]["id"],
            "flavorRef": "1",
            "networks": [{"uuid": networks[0]["id"]}],
            "metadata": {"made-by": "kilonova cloud up"},
        }
        if self.real:
            body |= {"key_name": KEY, "user_data": base64.b64encode(USER_DATA.encode()).decode()}
        made = demo.post(self.url("/servers"), {"server": body}, MICROVERSION)["server"]
        return demo.get(self.url(f"/servers/{made['id']}"), **MICROVERSION)["server"]

    def status(self) -> str | None:
        server = self.find(Rest(self.site, "demo", "demo"))
        return str(server["status"]) if server else None

    def last_boots(self) -> dict[str, str]:
        """What each guest of this cloud has said since it was started, by its id."""
        logs = (self.site.data / "compute").glob("**/instances/*/console.log")
        return {log.parent.name: last_boot(log.read_text(errors="replace")) for log in logs}

    def console(
        self, lines: int = 25, within: float = 120, wanted: str = "READY", known: Mapping[str, str] | None = None
    ) -> str:
        """The last lines of the newest boot's console log, once the guest has said that it is ready.

        `known`: what servers said in a boot that is not meant; a newer one is waited for.
        """
        demo = Rest(self.site, "demo", "demo")
        server = self.find(demo)
        if server is None:
            return ""
        action = self.url(f"/servers/{server['id']}/action")
        before = (known or {}).get(server["id"])
        end = time.monotonic() + within
        while True:
            text = str(demo.post(action, {"os-getConsoleOutput": {"length": None}}, MICROVERSION)["output"])
            said = last_boot(text) if self.real else text
            fresh = "" if said == before else said
            if wanted in fresh or time.monotonic() > end or not self.real:
                return "\n".join(fresh.strip().splitlines()[-lines:])
            time.sleep(1)

    def address(self) -> str | None:
        """Its address on the private network, where there is a data path."""
        server = self.find(Rest(self.site, "demo", "demo"))
        if server is None:
            return None
        addresses = [item["addr"] for items in server["addresses"].values() for item in items]
        return addresses[0] if addresses else None

    def ssh(self, address: str, *words: str) -> list[str]:
        options = ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR"]
        return ["ssh", "-i", str(self.key_file), *options, "-o", "ConnectTimeout=10", f"root@{address}", *words]

    def reachable(self, within: float = 60) -> bool:
        """Whether ssh into it works from this machine."""
        address = self.address()
        if address is None:
            return False
        end = time.monotonic() + within
        while time.monotonic() < end:
            if ok(self.ssh(address, "true"), timeout=30):
                return True
            time.sleep(1)
        return False


def last_boot(text: str) -> str:
    """The part of a console log since the last start: the guest image says seconds since its kernel began."""
    lines = text.splitlines(keepends=True)
    begin, last = 0, 0.0
    for number, line in enumerate(lines):
        if stamp := STAMP.search(line):
            seconds = float(stamp.group(1))
            if seconds < last - OUT_OF_ORDER:
                begin = number
            last = seconds
    return "".join(lines[begin:])
