"""Options of the libvirt driver."""

from __future__ import annotations

from oslo_config import cfg, types

GROUP = "libvirt"

OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "virt_type",
        default="kvm",
        choices=["kvm", "lxc", "qemu", "parallels"],
        help="Kind of guests: kvm uses the processor's virtualization, qemu emulates. The others are refused at start.",
    ),
    cfg.StrOpt(
        "connection_uri",
        default="",
        help="Where libvirt listens; empty stands for qemu:///system.",
    ),
    cfg.StrOpt(
        "images_type",
        default="default",
        choices=["raw", "flat", "qcow2", "lvm", "rbd", "ploop", "default"],
        help="How local disks are stored: qcow2 overlays a cached image, raw and flat copy it, "
        "default decides by use_cow_images. The others are refused at start.",
    ),
    cfg.StrOpt(
        "cpu_mode",
        choices=["host-model", "host-passthrough", "custom", "none"],
        help="What processor guests see; unset means host-model. custom takes one of cpu_models. "
        "host-passthrough is refused where guests are emulated.",
    ),
    cfg.ListOpt(
        "cpu_models",
        default=[],
        deprecated_name="cpu_model",
        help="Models for cpu_mode=custom, the most compatible first; the first that has the flavor's required "
        "processor traits is taken.",
    ),
    cfg.ListOpt(
        "cpu_model_extra_flags",
        item_type=types.String(ignore_case=True),
        default=[],
        help="Processor flags to add to the model (or, with a leading minus, to take from it).",
    ),
    cfg.ListOpt("hw_machine_type", help="Default machine types by architecture, as x86_64=q35."),
    cfg.IntOpt(
        "tb_cache_size",
        min=0,
        help="Translation cache of an emulated guest in MiB; unset leaves it to QEMU, which may take 1 GiB.",
    ),
    cfg.ListOpt(
        "disk_cachemodes",
        default=[],
        help="Cache modes by kind of disk source, as file=writeback,block=none.",
    ),
    cfg.StrOpt("disk_prefix", help="Device name prefix for all disks instead of the bus's own (vd, sd, hd)."),
    cfg.StrOpt("hw_disk_discard", choices=["ignore", "unmap"], help="What happens to blocks the guest discards."),
    cfg.IntOpt(
        "num_pcie_ports",
        default=0,
        min=0,
        max=28,
        help="PCIe ports of q35 and virt machines, that is how many devices can be plugged; 0 leaves it to libvirt.",
    ),
    cfg.IntOpt(
        "mem_stats_period_seconds",
        default=10,
        help="How often guests report their memory use; 0 or less leaves out the balloon device.",
    ),
    cfg.StrOpt("rng_dev_path", default="/dev/urandom", help="Source of randomness for guests."),
    cfg.StrOpt(
        "sysinfo_serial",
        default="unique",
        choices=["none", "os", "hardware", "auto", "unique"],
        help="Serial number in the guest's SMBIOS: the server's id (unique), the host's (os, hardware, or auto: os "
        "where there is one), or none.",
    ),
    cfg.BoolOpt(
        "use_virtio_for_bridges",
        default=True,
        help="Give guests virtio network cards where the image does not ask for another.",
    ),
    cfg.IntOpt("rx_queue_size", choices=[256, 512, 1024], help="Receive queue of virtio network cards under KVM."),
    cfg.IntOpt("max_queues", min=1, help="Most queues of a network card; unset goes by the kernel's version."),
    cfg.IntOpt(
        "wait_soft_reboot_seconds",
        default=120,
        help="How long a guest may take to shut down in a soft reboot before it is rebooted hard.",
    ),
    cfg.IntOpt("images_cpu_time_limit", default=30, help="Processor seconds qemu-img may use to inspect an image."),
    cfg.IntOpt("images_address_space_limit", default=2, help="Address space in GiB qemu-img may use to inspect one."),
    cfg.BoolOpt(
        "volume_use_multipath",
        default=False,
        deprecated_name="iscsi_use_multipath",
        help="Attach volumes over several paths.",
    ),
    cfg.BoolOpt(
        "volume_enforce_multipath",
        default=False,
        help="Refuse to attach volumes when multipathing is asked for but multipathd does not run.",
    ),
    cfg.IntOpt(
        "num_volume_scan_tries",
        default=5,
        deprecated_name="num_iscsi_scan_tries",
        help="How often to look for the device of a volume.",
    ),
    cfg.IntOpt(
        "device_detach_attempts",
        default=8,
        min=1,
        help="How often a running guest is asked for a device before it counts as one that does not give it away.",
    ),
    cfg.IntOpt(
        "device_detach_timeout",
        default=20,
        min=1,
        help="Seconds that a running guest has to give a device away before it is asked again.",
    ),
    cfg.StrOpt(
        "nfs_mount_point_base",
        default="$state_path/mnt",
        help="Directory below which the shares of NFS volumes are mounted.",
    ),
    cfg.StrOpt("nfs_mount_options", help="Mount options for NFS volumes."),
    cfg.StrOpt("rbd_user", help="Ceph user for volumes whose connection names none."),
    cfg.StrOpt("rbd_secret_uuid", help="libvirt secret with that user's key."),
]
