"""Options of the virtualization drivers that live in the default group."""

from __future__ import annotations

from oslo_config import cfg

GROUP = None


OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "instances_path",
        default="$state_path/instances",
        help="Directory of the guests' disks and logs and of the image cache.",
    ),
    cfg.StrOpt(
        "instance_name_template",
        default="instance-%08x",
        help="Name of a guest on its host, from the server's number.",
    ),
    cfg.BoolOpt(
        "use_cow_images",
        default=True,
        help="With libvirt.images_type=default: overlay cached images (true) or copy them (false).",
    ),
    cfg.BoolOpt("force_raw_images", default=True, help="Convert images to raw when they enter the cache."),
    cfg.StrOpt(
        "preallocate_images",
        default="none",
        choices=["none", "space"],
        help="space reserves the whole size of a disk when it is made.",
    ),
    cfg.StrOpt(
        "default_ephemeral_format",
        help="File system of ephemeral disks that do not name one; unset: ext4 for Linux, ntfs for Windows, else vfat.",
    ),
    cfg.StrOpt(
        "config_drive_format",
        default="iso9660",
        choices=["iso9660", "vfat"],
        deprecated_for_removal=True,
        deprecated_since="19.0.0",
        help="iso9660 is a CD-ROM, vfat a disk.",
    ),
    cfg.BoolOpt("force_config_drive", default=False, help="Give every new server a config drive."),
    cfg.BoolOpt(
        "vif_plugging_is_fatal",
        default=True,
        help="Fail a build when the network does not report an interface as plugged in time.",
    ),
    cfg.IntOpt(
        "vif_plugging_timeout",
        default=300,
        min=0,
        help="Seconds to wait for interfaces to be plugged; 0 does not wait.",
    ),
    cfg.StrOpt(
        "pointer_model",
        default="usbtablet",
        choices=[None, "ps2mouse", "usbtablet"],
        help="Pointer of guests whose image does not name one.",
    ),
    cfg.StrOpt(
        "my_block_storage_ip",
        default="$my_ip",
        help="Address of this host on the storage network, told to the volume service.",
    ),
]
