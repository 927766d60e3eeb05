"""The documents a guest reads about itself, by version: pure functions of what is known of the server.

Two trees: OpenStack's (JSON files per version) and EC2's (a tree of small values per version).
"""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import posixpath
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any, Final

from kilonova.metadata import ec2
from kilonova.metadata.instance_data import Device, InstanceData
from kilonova.metadata.network_data import network_data

FOLSOM = "2012-08-10"
GRIZZLY = "2013-04-04"
HAVANA = "2013-10-17"
LIBERTY = "2015-10-15"
NEWTON = "2016-06-30"
NEWTON_2 = "2016-10-06"
OCATA = "2017-02-22"
ROCKY = "2018-08-27"
VICTORIA = "2020-10-14"
EPOXY = "2025-04-04"

VERSIONS: Final = (FOLSOM, GRIZZLY, HAVANA, LIBERTY, NEWTON, NEWTON_2, OCATA, ROCKY, VICTORIA, EPOXY)
LATEST: Final = "latest"

TEXT: Final = "text/plain"
JSON: Final = "application/json"

PASSWORD: Final = "password"  # noqa: S105 - a file's name
CONTENT: Final = "content"
_SEED_BYTES = 512


class NotThere(Exception):
    """No such document."""


@dataclasses.dataclass(frozen=True)
class Document:
    body: bytes
    content_type: str = TEXT


@dataclasses.dataclass(frozen=True)
class VendorData:
    """`static` is the operator's JSON file, None when it is not offered; `dynamic` asks the operator's services when
    a document needs them."""

    static: Any = None
    dynamic: Callable[[InstanceData], Mapping[str, Any]] | None = None


@dataclasses.dataclass(frozen=True)
class Documents:
    """Everything one server can read. `domain` is appended to host names."""

    data: InstanceData
    vendor: VendorData = dataclasses.field(default_factory=VendorData)
    domain: str = ""
    network_config: bytes | None = None
    """A file of network settings for guests of networks without DHCP."""

    @property
    def hostname(self) -> str:
        return f"{self.data.hostname}.{self.domain}" if self.domain else self.data.hostname

    @property
    def content(self) -> dict[str, bytes]:
        """Files by number: the network settings, then the injected ones."""
        bodies = [self.network_config] if self.network_config else []
        bodies += [body for _, body in self.data.files]
        return {f"{number:04d}": body for number, body in enumerate(bodies)}

    def lookup(self, path: str) -> Document:
        """The document at a request's path. Raises NotThere."""
        tokens = [token for token in posixpath.normpath("/" + path).lstrip("/").split("/") if token]
        if not tokens or tokens[0] not in ("ec2", "openstack"):
            tokens = ["ec2", *tokens]
        root, rest = tokens[0], tokens[1:]
        if not rest:
            return _listing([*(ec2.VERSIONS if root == "ec2" else released()), LATEST])
        return self._ec2(rest) if root == "ec2" else self._openstack(rest)

    def _ec2(self, tokens: Sequence[str]) -> Document:
        try:
            found = ec2.find(ec2.tree(self.data, self.hostname, tokens[0]), tokens[1:])
        except KeyError as failure:
            raise NotThere(str(failure)) from failure
        return Document(ec2.render(found))

    def _openstack(self, tokens: Sequence[str]) -> Document:
        if tokens[0] == CONTENT:
            if len(tokens) != 2 or tokens[1] not in self.content:
                raise NotThere("/".join(tokens))
            return Document(self.content[tokens[1]])
        version = VERSIONS[-1] if tokens[0] == LATEST else tokens[0]
        if version not in VERSIONS:
            raise NotThere(version)
        if len(tokens) == 1:
            return _listing(self.listing(version))
        return self.file(version, "/".join(tokens[1:]))

    def listing(self, version: str) -> list[str]:
        return [name for name, since in _FILES.items() if version >= since and self._exists(name)]

    def file(self, version: str, name: str) -> Document:
        """One file of a version. Raises NotThere."""
        if name not in _FILES or (name in _STRICT and version < _FILES[name]) or not self.has(name):
            raise NotThere(f"{version}/{name}")
        if name == PASSWORD:
            return Document((self.data.password or "").encode())
        return {
            "meta_data.json": lambda: Document(_dump(self.meta_data(version)), JSON),
            "user_data": lambda: Document(self.data.user_data or b""),
            "vendor_data.json": lambda: Document(_dump(self.vendor.static), JSON),
            "network_data.json": lambda: Document(_dump(network_data(self.data.network_info) or {})),
            "vendor_data2.json": lambda: Document(_dump(self.vendor_data()), JSON),
        }[name]()

    def meta_data(self, version: str) -> dict[str, Any]:
        """The content of meta_data.json."""
        data = self.data
        found: dict[str, Any] = {"uuid": data.uuid}
        if data.metadata:
            found["meta"] = dict(data.metadata)
        if data.files:
            found["files"] = self._file_entries()
        found.update(data.extra)
        if self.network_config:
            found["network_config"] = {"name": "network_config", "content_path": f"/{CONTENT}/0000"}
        found |= _keys(data)
        found["hostname"] = self.hostname
        found["name"] = data.display_name
        found["launch_index"] = data.launch_index
        found["availability_zone"] = data.availability_zone
        if version >= GRIZZLY:
            found["random_seed"] = base64.b64encode(os.urandom(_SEED_BYTES)).decode()
        if version >= LIBERTY:
            found["project_id"] = data.project_id
        if version >= NEWTON:
            found["devices"] = devices(data.devices, version)
        if version >= VICTORIA:
            found["dedicated_cpus"] = list(data.dedicated_cpus)
        return found

    def vendor_data(self) -> dict[str, Any]:
        """The content of vendor_data2.json: what each provider gives, under its name."""
        found: dict[str, Any] = {"static": self.vendor.static} if self.vendor.static is not None else {}
        if self.vendor.dynamic is not None:
            found = {**self.vendor.dynamic(self.data), **found}
        return found

    def _exists(self, name: str) -> bool:
        return name != "user_data" or self.data.user_data is not None

    def has(self, name: str) -> bool:
        """Whether the file can be read: vendor data may be listed and yet not be offered."""
        if name == "vendor_data.json":
            return self.vendor.static is not None
        return self._exists(name)

    def _file_entries(self) -> list[dict[str, str]]:
        first = 1 if self.network_config else 0
        return [
            {"path": path, "content_path": f"/{CONTENT}/{number:04d}"}
            for number, (path, _) in enumerate(self.data.files, start=first)
        ]


_FILES: Final[Mapping[str, str]] = {
    "meta_data.json": FOLSOM,
    "user_data": FOLSOM,
    PASSWORD: GRIZZLY,
    "vendor_data.json": HAVANA,
    "network_data.json": LIBERTY,
    "vendor_data2.json": NEWTON_2,
}
"""File -> the version that brought it."""

_STRICT: Final = frozenset({PASSWORD, "vendor_data.json", "vendor_data2.json"})
"""Files that older versions refuse; the others can be read in every version although older ones do not list them."""


def released(today: date | None = None) -> list[str]:
    """Versions that are not in the future."""
    now = (today or date.today()).isoformat()
    return [version for version in VERSIONS if version <= now]


def devices(found: Sequence[Device], version: str) -> list[dict[str, Any]]:
    """Tagged devices as a version shows them: VLANs since Ocata, trusted functions since Rocky, shares since Epoxy."""
    shown = (_device(each, version) for each in found)
    return [each for each in shown if each is not None]


def _device(device: Device, version: str) -> dict[str, Any] | None:
    if device.type == "share" and version < EPOXY:
        return None
    since = {"vlan": OCATA, "vf_trusted": ROCKY}
    facts = {name: value for name, value in device.facts.items() if version >= since.get(name, FOLSOM)}
    if device.type == "nic" and device.tags is None and not (facts.keys() & since.keys()):
        return None
    shown: dict[str, Any] = {"type": device.type, **facts, "bus": device.bus, "address": device.address}
    if device.tags is not None:
        shown["tags"] = list(device.tags)
    return shown


def _keys(data: InstanceData) -> dict[str, Any]:
    pair = data.keypair
    if not data.key_name or pair is None:
        return {}
    return {
        "public_keys": {pair.name: pair.public_key},
        "keys": [{"name": pair.name, "type": pair.type, "data": pair.public_key}],
    }


def _listing(names: Sequence[str]) -> Document:
    return Document("\n".join(names).encode())


def _dump(value: Any) -> bytes:
    return json.dumps(value).encode()
