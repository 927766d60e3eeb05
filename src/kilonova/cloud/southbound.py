"""Neutron's ports as OVN's southbound database has them, followed by OVSDB's `monitor` (RFC 7047, 4.1.5)."""

from __future__ import annotations

import codecs
import dataclasses
import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

DEVICE_PREFIX = "ovnmeta-"
COLUMNS = ["logical_port", "type", "mac", "external_ids", "datapath"]


@dataclasses.dataclass(frozen=True)
class Port:
    """A row of `Port_Binding`."""

    name: str
    kind: str
    mac: str
    ips: tuple[str, ...]
    cidrs: tuple[str, ...]
    device: str
    project: str
    mtu: str
    datapath: str

    @classmethod
    def of(cls, row: dict[str, Any]) -> Port:
        outside = dict(row["external_ids"][1])
        words = as_list(row["mac"])
        mac, *ips = words[0].split() if words else [""]
        return cls(
            name=row["logical_port"],
            kind=row["type"],
            mac=mac,
            ips=tuple(ips),
            cidrs=tuple(outside.get("neutron:cidrs", "").split()),
            device=outside.get("neutron:device_id", ""),
            project=outside.get("neutron:project_id", ""),
            mtu=outside.get("neutron:mtu", ""),
            datapath=row["datapath"][1],
        )

    @property
    def serves_metadata(self) -> bool:
        return self.kind == "localport" and self.device.startswith(DEVICE_PREFIX) and bool(self.mac and self.cidrs)


def as_list(value: Any) -> list[Any]:
    """An OVSDB column: a set of any size but one comes as `["set", [...]]`."""
    if isinstance(value, list) and value and value[0] == "set":
        return list(value[1])
    return [value]


class Ports:
    """The ports as last heard of."""

    def __init__(self) -> None:
        self.rows: dict[str, Port] = {}

    def update(self, changes: dict[str, Any]) -> None:
        for key, change in changes.get("Port_Binding", {}).items():
            if "new" in change:
                self.rows[key] = Port.of(change["new"])
            else:
                self.rows.pop(key, None)

    def with_metadata(self) -> dict[str, Port]:
        return {port.datapath: port for port in self.rows.values() if port.serves_metadata}

    def owner(self, datapath: str, ip: str) -> Port | None:
        """The guest's port that has this address on this network."""
        for port in list(self.rows.values()):
            if (
                port.datapath == datapath
                and port.kind == ""
                and (ip in port.ips or any(c.split("/")[0] == ip for c in port.cidrs))
            ):
                return port
        return None


def messages(stream: socket.socket) -> Iterator[dict[str, Any]]:
    """JSON values one after another."""
    decoder, text = json.JSONDecoder(), ""
    # A packet may end in the middle of a character of somebody's port name.
    characters = codecs.getincrementaldecoder("utf-8")()
    while True:
        data = stream.recv(65536)
        if not data:
            raise ConnectionError("the southbound database closed the connection")
        text += characters.decode(data)
        while text := text.lstrip():
            try:
                value, end = decoder.raw_decode(text)
            except ValueError:
                break
            text = text[end:]
            yield value


def follow(southbound: Path, ports: Ports, changed: Callable[[], None]) -> None:
    """Keep `ports` up to date until the connection ends."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
        stream.connect(str(southbound))
        request = {"Port_Binding": [{"columns": COLUMNS}]}
        send(stream, {"method": "monitor", "params": ["OVN_Southbound", None, request], "id": 0})
        for message in messages(stream):
            if message.get("method") == "echo":
                send(stream, {"result": message["params"], "error": None, "id": message["id"]})
            elif message.get("method") == "update":
                ports.update(message["params"][1])
                changed()
            elif message.get("id") == 0:
                if message.get("error"):
                    raise ConnectionError(f"monitor was refused: {message['error']}")
                ports.rows.clear()
                ports.update(message["result"])
                changed()


def send(stream: socket.socket, message: dict[str, Any]) -> None:
    stream.sendall(json.dumps(message).encode())
