"""Closed sets of values that fields of wire objects take."""

from __future__ import annotations

from typing import Any, ClassVar

from kilonova.contract.objects.types import ChoiceType


class Architecture(ChoiceType):
    ALPHA = "alpha"
    ARMV6 = "armv6"
    ARMV7L = "armv7l"
    ARMV7B = "armv7b"
    AARCH64 = "aarch64"
    CRIS = "cris"
    I686 = "i686"
    IA64 = "ia64"
    LM32 = "lm32"
    M68K = "m68k"
    MICROBLAZE = "microblaze"
    MICROBLAZEEL = "microblazeel"
    MIPS = "mips"
    MIPSEL = "mipsel"
    MIPS64 = "mips64"
    MIPS64EL = "mips64el"
    OPENRISC = "openrisc"
    PARISC = "parisc"
    PARISC64 = "parisc64"
    PPC = "ppc"
    PPCLE = "ppcle"
    PPC64 = "ppc64"
    PPC64LE = "ppc64le"
    PPCEMB = "ppcemb"
    S390 = "s390"
    S390X = "s390x"
    SH4 = "sh4"
    SH4EB = "sh4eb"
    SPARC = "sparc"
    SPARC64 = "sparc64"
    UNICORE32 = "unicore32"
    X86_64 = "x86_64"
    XTENSA = "xtensa"
    XTENSAEB = "xtensaeb"

    LOWER = True
    ALIASES: ClassVar[dict[str, str]] = {
        "i386": "i686",
        "i486": "i686",
        "i586": "i686",
        "x86_32": "i686",
        "x86_32p": "i686",
        "amd64": "x86_64",
    }


class BlockDeviceDestinationType(ChoiceType):
    LOCAL = "local"
    VOLUME = "volume"


class BlockDeviceEncryptionFormatType(ChoiceType):
    PLAIN = "plain"
    LUKS = "luks"
    LUKSV2 = "luksv2"


class BlockDeviceSourceType(ChoiceType):
    BLANK = "blank"
    IMAGE = "image"
    SNAPSHOT = "snapshot"
    VOLUME = "volume"


class BlockDeviceType(ChoiceType):
    CDROM = "cdrom"
    DISK = "disk"
    FLOPPY = "floppy"
    FS = "fs"
    LUN = "lun"


class CPUAllocationPolicy(ChoiceType):
    DEDICATED = "dedicated"
    SHARED = "shared"
    MIXED = "mixed"


class CPUEmulatorThreadsPolicy(ChoiceType):
    SHARE = "share"
    ISOLATE = "isolate"


class CPUFeaturePolicy(ChoiceType):
    FORCE = "force"
    REQUIRE = "require"
    OPTIONAL = "optional"
    DISABLE = "disable"
    FORBID = "forbid"


class CPUMatch(ChoiceType):
    MINIMUM = "minimum"
    EXACT = "exact"
    STRICT = "strict"


class CPUMode(ChoiceType):
    CUSTOM = "custom"
    HOST_MODEL = "host-model"
    HOST_PASSTHROUGH = "host-passthrough"


class CPUThreadAllocationPolicy(ChoiceType):
    PREFER = "prefer"
    ISOLATE = "isolate"
    REQUIRE = "require"


class ConfigDrivePolicy(ChoiceType):
    OPTIONAL = "optional"
    MANDATORY = "mandatory"


class DiskBus(ChoiceType):
    FDC = "fdc"
    IDE = "ide"
    SATA = "sata"
    SCSI = "scsi"
    USB = "usb"
    VIRTIO = "virtio"
    XEN = "xen"
    LXC = "lxc"
    UML = "uml"


class FirmwareType(ChoiceType):
    UEFI = "uefi"
    BIOS = "bios"


class HVType(ChoiceType):
    BAREMETAL = "baremetal"
    BHYVE = "bhyve"
    DOCKER = "docker"
    FAKE = "fake"
    HYPERV = "hyperv"
    IRONIC = "ironic"
    KQEMU = "kqemu"
    KVM = "kvm"
    LXC = "lxc"
    LXD = "lxd"
    OPENVZ = "openvz"
    PARALLELS = "parallels"
    PHYP = "phyp"
    QEMU = "qemu"
    TEST = "test"
    UML = "uml"
    VBOX = "vbox"
    VZ = "vz"
    VMWARE = "vmware"
    XEN = "xen"
    ZVM = "zvm"
    PRSM = "prsm"

    LOWER = True
    ALIASES: ClassVar[dict[str, str]] = {"xapi": "xen"}


class HypervisorDriver(ChoiceType):
    LIBVIRT = "libvirt"
    XENAPI = "xenapi"
    VMWAREAPI = "vmwareapi"
    IRONIC = "ironic"
    HYPERV = "hyperv"


class ImageSignatureHashType(ChoiceType):
    SHA_224 = "SHA-224"
    SHA_256 = "SHA-256"
    SHA_384 = "SHA-384"
    SHA_512 = "SHA-512"


class ImageSignatureKeyType(ChoiceType):
    DSA = "DSA"
    ECC_SECP384R1 = "ECC_SECP384R1"
    ECC_SECP521R1 = "ECC_SECP521R1"
    ECC_SECT409K1 = "ECC_SECT409K1"
    ECC_SECT409R1 = "ECC_SECT409R1"
    ECC_SECT571K1 = "ECC_SECT571K1"
    ECC_SECT571R1 = "ECC_SECT571R1"
    RSA_PSS = "RSA-PSS"


class InputBus(ChoiceType):
    USB = "usb"
    VIRTIO = "virtio"


class InstancePowerState(ChoiceType):
    """Power states by name; a state's number is its place in `ALL`."""

    PENDING = "pending"
    RUNNING = "running"
    PAUSED = "paused"
    SHUTDOWN = "shutdown"
    CRASHED = "crashed"
    SUSPENDED = "suspended"
    ALL = (PENDING, RUNNING, "_unused", PAUSED, SHUTDOWN, "_unused", CRASHED, SUSPENDED)

    @classmethod
    def canonical(cls, value: Any) -> Any:
        """The name of a state given by name or number."""
        if isinstance(value, int | str) and str(value).isdigit() and int(value) < len(cls.ALL):
            return cls.ALL[int(value)]
        return value


class MaxPhyAddrMode(ChoiceType):
    PASSTHROUGH = "passthrough"
    EMULATE = "emulate"


class MemEncryptionModel(ChoiceType):
    AMD_SEV = "amd-sev"
    AMD_SEV_ES = "amd-sev-es"
    AMD_SEV_SNP = "amd-sev-snp"
    INTEL_TDX = "intel-tdx"


class MigrationType(ChoiceType):
    MIGRATION = "migration"
    RESIZE = "resize"
    LIVE_MIGRATION = "live-migration"
    EVACUATION = "evacuation"


class MonitorMetricType(ChoiceType):
    CPU_FREQUENCY = "cpu.frequency"
    CPU_USER_TIME = "cpu.user.time"
    CPU_KERNEL_TIME = "cpu.kernel.time"
    CPU_IDLE_TIME = "cpu.idle.time"
    CPU_IOWAIT_TIME = "cpu.iowait.time"
    CPU_USER_PERCENT = "cpu.user.percent"
    CPU_KERNEL_PERCENT = "cpu.kernel.percent"
    CPU_IDLE_PERCENT = "cpu.idle.percent"
    CPU_IOWAIT_PERCENT = "cpu.iowait.percent"
    CPU_PERCENT = "cpu.percent"
    NUMA_MEMBW_MAX = "numa.membw.max"
    NUMA_MEMBW_CURRENT = "numa.membw.current"


class OSType(ChoiceType):
    LINUX = "linux"
    WINDOWS = "windows"

    LOWER = True


class PCINUMAAffinityPolicy(ChoiceType):
    REQUIRED = "required"
    LEGACY = "legacy"
    PREFERRED = "preferred"
    SOCKET = "socket"


class PciDeviceStatus(ChoiceType):
    AVAILABLE = "available"
    CLAIMED = "claimed"
    ALLOCATED = "allocated"
    REMOVED = "removed"
    DELETED = "deleted"
    UNAVAILABLE = "unavailable"
    UNCLAIMABLE = "unclaimable"


class PciDeviceType(ChoiceType):
    TYPE_PCI = "type-PCI"
    TYPE_PF = "type-PF"
    TYPE_VF = "type-VF"
    VDPA = "vdpa"


class PointerModelType(ChoiceType):
    USBTABLET = "usbtablet"


class RNGModel(ChoiceType):
    VIRTIO = "virtio"


class SCSIModel(ChoiceType):
    BUSLOGIC = "buslogic"
    IBMVSCSI = "ibmvscsi"
    LSILOGIC = "lsilogic"
    LSISAS1068 = "lsisas1068"
    LSISAS1078 = "lsisas1078"
    VIRTIO_SCSI = "virtio-scsi"
    VMPVSCSI = "vmpvscsi"


class SecureBoot(ChoiceType):
    REQUIRED = "required"
    DISABLED = "disabled"
    OPTIONAL = "optional"


class ShareMappingProto(ChoiceType):
    NFS = "NFS"
    CEPHFS = "CEPHFS"


class ShareMappingStatus(ChoiceType):
    ATTACHING = "attaching"
    DETACHING = "detaching"
    ACTIVE = "active"
    INACTIVE = "inactive"
    ERROR = "error"


class SoundModelType(ChoiceType):
    SB16 = "sb16"
    ES1370 = "es1370"
    PCSPK = "pcspk"
    AC97 = "ac97"
    ICH6 = "ich6"
    ICH9 = "ich9"
    USB = "usb"
    VIRTIO = "virtio"


class TPMModel(ChoiceType):
    TPM_TIS = "tpm-tis"
    TPM_CRB = "tpm-crb"


class TPMVersion(ChoiceType):
    V1_2 = "1.2"
    V2_0 = "2.0"


class USBControllerModelType(ChoiceType):
    NONE = "none"
    NEC_XHCI = "nec-xhci"
    QEMU_XHCI = "qemu-xhci"


class VIFModel(ChoiceType):
    VIRTIO = "virtio"
    NE2K_PCI = "ne2k_pci"
    PCNET = "pcnet"
    RTL8139 = "rtl8139"
    E1000 = "e1000"
    E1000E = "e1000e"
    NETFRONT = "netfront"
    SPAPR_VLAN = "spapr-vlan"
    LAN9118 = "lan9118"
    SRIOV = "sriov"
    VMXNET = "vmxnet"
    VMXNET3 = "vmxnet3"
    IGB = "igb"


class VIOMMUModel(ChoiceType):
    INTEL = "intel"
    SMMUV3 = "smmuv3"
    VIRTIO = "virtio"
    AUTO = "auto"


class VMMode(ChoiceType):
    HVM = "hvm"
    XEN = "xen"
    UML = "uml"
    EXE = "exe"

    LOWER = True
    ALIASES: ClassVar[dict[str, str]] = {"pv": "xen", "hv": "hvm", "baremetal": "hvm"}


class VideoModel(ChoiceType):
    CIRRUS = "cirrus"
    QXL = "qxl"
    VGA = "vga"
    VMVGA = "vmvga"
    XEN = "xen"
    VIRTIO = "virtio"
    GOP = "gop"
    NONE = "none"
    BOCHS = "bochs"


class WatchdogAction(ChoiceType):
    NONE = "none"
    PAUSE = "pause"
    POWEROFF = "poweroff"
    RESET = "reset"
    DISABLED = "disabled"
