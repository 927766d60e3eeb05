"""Cinder driver of the one-machine cloud: a volume is a sparse raw file in one folder.

For machines without device-mapper. Snapshots and clones are copies, by reference where the file system can. A volume
is attached by its path: with the connection type `gpfs` a libvirt compute host uses the file as it is, since that is
all its GPFS volume driver does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cinder import interface, utils
from cinder.image import image_utils
from cinder.volume import configuration, driver, volume_utils
from oslo_config import cfg

GIB = 1024**3
OPTIONS = [
    cfg.StrOpt("kilonova_volumes_dir", default="$state_path/volumes"),
    cfg.StrOpt("kilonova_connection_type", default="gpfs"),
    cfg.IntOpt("kilonova_capacity_gb", default=1000),
]
cfg.CONF.register_opts(OPTIONS, group=configuration.SHARED_CONF_GROUP)


@interface.volumedriver
class FileDriver(driver.VolumeDriver):
    VERSION = "1.0"
    CI_WIKI_NAME = "none"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.configuration.append_config_values(OPTIONS)
        self.base = Path(self.configuration.kilonova_volumes_dir)

    @staticmethod
    def get_driver_options() -> list[Any]:
        return OPTIONS

    def do_setup(self, context: Any) -> None:
        self.base.mkdir(parents=True, exist_ok=True)

    def check_for_setup_error(self) -> None:
        pass

    def file(self, named: Any) -> Path:
        """The file of a volume or a snapshot."""
        return self.base / named.name

    def local_path(self, volume: Any) -> str:
        return str(self.file(volume))

    def grow(self, volume: Any, size_gb: int) -> None:
        with self.file(volume).open("ab") as data:
            data.truncate(size_gb * GIB)

    def copy(self, source: Path, target: Path) -> None:
        utils.execute("cp", "--reflink=auto", "--sparse=always", str(source), str(target))

    def create_volume(self, volume: Any) -> None:
        self.grow(volume, volume.size)

    def delete_volume(self, volume: Any) -> None:
        self.file(volume).unlink(missing_ok=True)

    def extend_volume(self, volume: Any, new_size: int) -> None:
        self.grow(volume, new_size)

    def create_snapshot(self, snapshot: Any) -> None:
        self.copy(self.file(snapshot.volume), self.file(snapshot))

    def delete_snapshot(self, snapshot: Any) -> None:
        self.file(snapshot).unlink(missing_ok=True)

    def create_volume_from_snapshot(self, volume: Any, snapshot: Any) -> None:
        self.copy(self.file(snapshot), self.file(volume))
        self.grow(volume, volume.size)

    def create_cloned_volume(self, volume: Any, src_vref: Any) -> None:
        self.copy(self.file(src_vref), self.file(volume))
        self.grow(volume, volume.size)

    def revert_to_snapshot(self, context: Any, volume: Any, snapshot: Any) -> None:
        self.copy(self.file(snapshot), self.file(volume))
        self.grow(volume, volume.size)

    def copy_image_to_volume(
        self, context: Any, volume: Any, image_service: Any, image_id: str, disable_sparse: bool = False
    ) -> None:
        block = self.configuration.volume_dd_blocksize
        path = self.local_path(volume)
        image_utils.fetch_to_raw(context, image_service, image_id, path, block, size=volume.size, run_as_root=False)
        self.grow(volume, volume.size)

    def copy_volume_to_image(self, context: Any, volume: Any, image_service: Any, image_meta: Any) -> None:
        path = self.local_path(volume)
        volume_utils.upload_volume(context, image_service, image_meta, path, volume, run_as_root=False)

    # A file needs no export.

    def ensure_export(self, context: Any, volume: Any) -> None:
        pass

    def create_export(self, context: Any, volume: Any, connector: Any) -> None:
        pass

    def remove_export(self, context: Any, volume: Any) -> None:
        pass

    def create_export_snapshot(self, context: Any, snapshot: Any, connector: Any) -> None:
        pass

    def remove_export_snapshot(self, context: Any, snapshot: Any) -> None:
        pass

    def initialize_connection(self, volume: Any, connector: Any, **kwargs: Any) -> dict[str, Any]:
        return {
            "driver_volume_type": self.configuration.kilonova_connection_type,
            "data": {
                "device_path": self.local_path(volume),
                "name": volume.name,
                "volume_id": volume.id,
                "access_mode": "rw",
            },
        }

    def terminate_connection(self, volume: Any, connector: Any, **kwargs: Any) -> None:
        pass

    def retype(self, context: Any, volume: Any, new_type: Any, diff: Any, host: Any) -> bool:
        return True

    def migrate_volume(self, context: Any, volume: Any, host: Any) -> tuple[bool, None]:
        return False, None

    def update_migrated_volume(
        self, ctxt: Any, volume: Any, new_volume: Any, original_volume_status: str
    ) -> dict[str, Any]:
        """After a migration the data has the new volume's name; it takes the old one unless that is in use."""
        source, target = self.file(new_volume), self.file(volume)
        if original_volume_status == "available" or not target.exists():
            source.replace(target)
            return {"_name_id": None, "provider_location": volume.provider_location}
        return {"_name_id": new_volume._name_id or new_volume.id, "provider_location": new_volume.provider_location}

    def manage_existing(self, volume: Any, existing_ref: dict[str, Any]) -> None:
        (self.base / existing_ref["source-name"]).rename(self.file(volume))

    def manage_existing_get_size(self, volume: Any, existing_ref: dict[str, Any]) -> int:
        size = (self.base / existing_ref["source-name"]).stat().st_size
        return -(-size // GIB)

    def unmanage(self, volume: Any) -> None:
        pass

    def _update_volume_stats(self) -> None:
        name = self.configuration.safe_get("volume_backend_name") or "file"
        capacity = self.configuration.kilonova_capacity_gb
        self._stats = {
            "volume_backend_name": name,
            "vendor_name": "kilonova",
            "driver_version": self.VERSION,
            "storage_protocol": "file",
            "pools": [
                {
                    "pool_name": name,
                    "total_capacity_gb": capacity,
                    "free_capacity_gb": capacity,
                    "allocated_capacity_gb": 0,
                    "provisioned_capacity_gb": 0,
                    "reserved_percentage": 0,
                    "thin_provisioning_support": True,
                    "thick_provisioning_support": False,
                    "max_over_subscription_ratio": "20.0",
                    "multiattach": True,
                    "online_extend_support": True,
                    "QoS_support": False,
                    "filter_function": self.get_filter_function(),
                    "goodness_function": self.get_goodness_function(),
                }
            ],
        }
