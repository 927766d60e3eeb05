"""The EC2 tree of metadata: nested dictionaries whose leaves are texts, numbers or lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kilonova.metadata.instance_data import Ec2Facts, InstanceData

VERSIONS: Final = (
    "1.0",
    "2007-01-19",
    "2007-03-01",
    "2007-08-29",
    "2007-10-10",
    "2007-12-15",
    "2008-02-01",
    "2008-09-01",
    "2009-04-04",
)
LATEST: Final = "latest"
_NO_MANIFEST: Final = "FIX" + "ME"
"""Images have no manifests here; guests have always been shown this word instead."""
_NAME = "_name"
"""Key of the text that stands for a node in its parent's listing."""


def tree(data: InstanceData, hostname: str, version: str) -> dict[str, Any]:
    """`meta-data` and, where there is any, `user-data`. Raises KeyError for an unknown version."""
    number = _number(version)
    facts = data.ec2()
    ids = facts.ids
    found: dict[str, Any] = {
        "ami-id": ids.ami_id,
        "ami-launch-index": data.launch_index,
        "ami-manifest-path": _NO_MANIFEST,
        "instance-id": ids.instance_id,
        "hostname": hostname,
        "local-ipv4": data.fixed_ipv4 or data.address,
        "reservation-id": data.reservation_id,
        "security-groups": list(facts.security_groups),
    }
    if data.key_name:
        found["public-keys"] = {"0": {_NAME: f"0={data.key_name}", "openssh-key": data.key_data}}
    for since, added in _additions(data, facts, hostname):
        if number >= _number(since):
            found |= added
    whole: dict[str, Any] = {"meta-data": found}
    if data.user_data is not None:
        whole["user-data"] = data.user_data
    return whole


def _number(version: str) -> int:
    if version == LATEST:
        return len(VERSIONS) - 1
    if version not in VERSIONS:
        raise KeyError(version)
    return VERSIONS.index(version)


def _additions(data: InstanceData, facts: Ec2Facts, hostname: str) -> list[tuple[str, dict[str, Any]]]:
    ids = facts.ids
    images = {"kernel-id": ids.kernel_id, "ramdisk-id": ids.ramdisk_id}
    return [
        (
            "2007-01-19",
            {"local-hostname": hostname, "public-hostname": hostname, "public-ipv4": data.floating_ip},
        ),
        ("2007-08-29", {"instance-type": data.flavor_name}),
        (
            "2007-12-15",
            {"block-device-mapping": dict(facts.block_devices), **{k: v for k, v in images.items() if v}},
        ),
        ("2008-02-01", {"placement": {"availability-zone": data.availability_zone}}),
        ("2008-09-01", {"instance-action": "none"}),
    ]


def find(data: Any, tokens: Sequence[str]) -> Any:
    """The node at a path. Raises KeyError."""
    for token in tokens:
        if not isinstance(data, Mapping | list) or token not in data:
            raise KeyError("/".join(tokens))
        data = data[token] if isinstance(data, Mapping) else token
    return data


def render(data: Any) -> bytes:
    """A node as text: the names below it, one a line, or its value."""
    if isinstance(data, bytes):
        return data
    if isinstance(data, Mapping):
        return "\n".join(_entry(key, data[key]) for key in sorted(data) if key != _NAME).encode()
    if isinstance(data, list):
        return "\n".join(data).encode()
    return str(data).encode()


def _entry(key: str, value: Any) -> str:
    if not isinstance(value, Mapping):
        return key
    return str(value[_NAME]) if _NAME in value else f"{key}/"
