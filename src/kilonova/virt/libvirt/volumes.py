"""Cinder volumes: connecting them to the host through os-brick, and what the guest sees of them."""

from __future__ import annotations

import dataclasses
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from oslo_concurrency import processutils
from oslo_config import cfg
from oslo_log import log

from kilonova.base.outward import without_paths
from kilonova.contract import exceptions
from kilonova.virt.driver import Volume
from kilonova.virt.libvirt.config.disk import IO_LIMITS, Disk, NetworkSource
from kilonova.virt.libvirt.disks import Place

LOG = log.getLogger(__name__)

BRICK_PROTOCOLS = frozenset({"iscsi", "fibre_channel", "nvmeof", "nfs", "storpool", "scaleio", "lightos"})
"""Connection types os-brick turns into a path on the host."""

PATH_PROTOCOLS = frozenset({"local", "gpfs"})
"""Connection types whose volume is a path that the host has already: nothing is to be connected."""

_ROOT_HELPER = "sudo"
"""Only a name: os-brick runs what needs root in its privsep daemon, or here when the agent is root."""


@dataclasses.dataclass(frozen=True)
class Source:
    """Where a connected volume's bytes are."""

    source: str | NetworkSource
    source_type: str = "block"


class Volumes:
    """All methods may be repeated."""

    def __init__(self, conf: cfg.ConfigOpts, host: str) -> None:
        self._conf = conf
        self._host = host

    def connector(self, enforce_multipath: bool | None = None) -> Mapping[str, Any]:
        """What the volume service must know of this host: addresses and initiator names.

        `enforce_multipath`: refuse where multipathing is asked for and multipathd does not run; else as configured.
        """
        from os_brick.initiator import connector as brick  # heavy, and hosts without volumes never need it

        properties: Mapping[str, Any] = brick.get_connector_properties(
            _ROOT_HELPER,
            self._conf.my_block_storage_ip,
            self._conf.libvirt.volume_use_multipath,
            self._conf.libvirt.volume_enforce_multipath if enforce_multipath is None else enforce_multipath,
            host=self._host,
        )
        return properties

    def connect(self, volume: Volume) -> Source:
        """Make the volume's bytes readable here. Raises VolumeDriverNotFound, DiskNotFound when no device appears,
        VolumeAttachFailed with what the connector says."""
        info = volume.connection_info
        kind, data = info.get("driver_volume_type"), info.get("data") or {}
        if kind in PATH_PROTOCOLS:
            return _local(volume, data)
        if kind == "rbd":
            return Source(self._rbd(data))
        path = self._connected(volume, kind, data)
        return Source(path, _source_type(path))

    def _connected(self, volume: Volume, kind: str | None, data: Mapping[str, Any]) -> str:
        from os_brick import exception as brick_exceptions

        try:
            return str(self._brick(volume, kind, lambda each: each.connect_volume(dict(data)))["path"])
        except (brick_exceptions.BrickException, processutils.ProcessExecutionError) as failure:
            LOG.warning("Volume %s is not connected: %s", volume.volume_id, failure)
            said = getattr(failure, "stderr", None) or getattr(failure, "msg", None) or type(failure).__name__
            reason = without_paths(" ".join(str(said).split()))
            raise exceptions.VolumeAttachFailed(volume_id=volume.volume_id, reason=reason) from failure

    def disconnect(self, volume: Volume, force: bool = True) -> None:
        """`force`: even when what was written does not reach the volume. Raises VolumeDriverNotFound, DiskNotFound
        when there is no device, or os-brick's error when it does not go."""
        info = volume.connection_info
        kind, data = info.get("driver_volume_type"), info.get("data") or {}
        if kind in (*PATH_PROTOCOLS, "rbd", None):
            return
        self._brick(
            volume, kind, lambda each: each.disconnect_volume(dict(data), None, force=force, ignore_errors=force)
        )

    def _brick(self, volume: Volume, kind: str | None, act: Callable[[Any], Any]) -> Any:
        if kind not in BRICK_PROTOCOLS:
            raise exceptions.VolumeDriverNotFound(driver_type=kind)
        from os_brick import exception as brick_exceptions
        from os_brick.initiator import connector as brick

        options: dict[str, Any] = {}
        data = volume.connection_info.get("data") or {}
        if kind == "nfs":
            options["nfs_mount_point_base"] = self._conf.libvirt.nfs_mount_point_base
            options["nfs_mount_options"] = data.get("options") or self._conf.libvirt.nfs_mount_options
        connector = brick.InitiatorConnector.factory(
            kind.upper(),
            _ROOT_HELPER,
            use_multipath=self._conf.libvirt.volume_use_multipath,
            device_scan_attempts=self._conf.libvirt.num_volume_scan_tries,
            **options,
        )
        try:
            return act(connector)
        except brick_exceptions.VolumeDeviceNotFound as failure:
            # The volume exists; it is this host that does not see it.
            raise exceptions.DiskNotFound(location=volume.volume_id) from failure

    def _rbd(self, data: Mapping[str, Any]) -> NetworkSource:
        conf = self._conf.libvirt
        auth = bool(data.get("auth_enabled")) or conf.rbd_user is not None
        return NetworkSource(
            protocol="rbd",
            name=data["name"],
            hosts=list(zip(data.get("hosts") or (), data.get("ports") or (), strict=False)),
            username=(data.get("auth_username") or conf.rbd_user) if auth else None,
            secret_type=data.get("secret_type") or "ceph",
            secret_uuid=(data.get("secret_uuid") or conf.rbd_secret_uuid) if auth else None,
        )


def disk(volume: Volume, place: Place, source: Source, cache: str | None, discard: str | None) -> Disk:
    """The volume as the guest's disk; its serial number is the volume's id, so that the guest can tell which it is."""
    data = volume.connection_info.get("data") or {}
    shared = volume.multiattach
    limits = {name: int(value) for name, value in (data.get("qos_specs") or {}).items() if name in IO_LIMITS}
    is_host_device = source.source_type == "block" and not isinstance(source.source, NetworkSource)
    return Disk(
        source=source.source,
        source_type=source.source_type,
        target=place.target,
        bus=place.bus,
        device=place.device,
        format=data.get("format") or "raw",
        cache="none" if shared else cache,
        io="native" if is_host_device and (shared or cache in ("none", "directsync")) else None,
        discard="unmap" if data.get("discard") else discard,
        serial=volume.serial,
        readonly=data.get("access_mode") == "ro",
        shareable=shared,
        limits=limits,
    )


def _local(volume: Volume, data: Mapping[str, Any]) -> Source:
    path = data.get("device_path")
    if not path or not Path(path).exists():
        LOG.warning("Volume %s should be at %s, which is not there", volume.volume_id, path)
        raise exceptions.DiskNotFound(location=volume.volume_id)
    return Source(str(path), _source_type(str(path)))


def _source_type(path: str) -> str:
    return "block" if stat.S_ISBLK(Path(path).stat().st_mode) else "file"
