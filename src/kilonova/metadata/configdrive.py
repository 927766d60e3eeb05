"""The files of a config drive: the same documents, all versions at once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from oslo_config import cfg

from kilonova.contract import objects
from kilonova.metadata import documents, ec2, vendordata
from kilonova.metadata.instance_data import Ec2Facts, block_mapping, ec2_ids, from_instance
from kilonova.metadata.interfaces import interfaces_file


class Documents:
    """Made once per agent; `files` once per drive."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._skipped = frozenset(conf.api.config_drive_skip_versions.split())
        self._domain = conf.api.dhcp_domain
        self._vendor = vendordata.load(conf)

    def files(
        self,
        instance: objects.Instance,
        network_info: Sequence[Mapping[str, Any]],
        injected_files: Sequence[tuple[str, bytes]] = (),
        admin_password: str | None = None,
        security_groups: Sequence[str] | None = None,
    ) -> dict[str, bytes]:
        """Path on the drive -> content."""
        extra = {"admin_pass": admin_password} if admin_password else {}

        def ec2_facts() -> Ec2Facts:
            return Ec2Facts(ec2_ids(instance), security_groups or (), block_mapping(instance, ()))

        data = from_instance(instance, network_info=network_info, ec2=ec2_facts, files=injected_files, extra=extra)
        whole = documents.Documents(data, self._vendor, self._domain, interfaces_file(network_info))
        return drive_files(whole, self._skipped)


def drive_files(whole: documents.Documents, skipped: frozenset[str] = frozenset()) -> dict[str, bytes]:
    """All documents by path; `skipped` are EC2 versions to leave out."""
    found: dict[str, bytes] = {}
    for version in (*ec2.VERSIONS, ec2.LATEST):
        if version in skipped:
            continue
        tree = ec2.tree(whole.data, whole.hostname, version)
        if "user-data" in tree:
            found[f"ec2/{version}/user-data"] = tree["user-data"]
        found[f"ec2/{version}/meta-data.json"] = json.dumps(tree["meta-data"]).encode()
    for version in (*documents.VERSIONS, documents.LATEST):
        number = documents.VERSIONS[-1] if version == documents.LATEST else version
        for name in whole.listing(number):
            # The password is the guest's to post: a drive made before it runs cannot have it.
            if name != documents.PASSWORD and whole.has(name):
                found[f"openstack/{version}/{name}"] = whole.file(number, name).body
    for number, body in whole.content.items():
        found[f"openstack/{documents.CONTENT}/{number}"] = body
    return found
