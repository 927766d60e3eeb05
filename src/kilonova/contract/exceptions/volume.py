"""Errors of volumes, block device mappings and disks."""

from kilonova.contract.exceptions.base import Forbidden, Invalid, NotFound, NotSupported, NovaException


class AutoDiskConfigDisabledByImage(Invalid):
    msg_fmt = "Auto disk config disabled by image (image %(image)s)."


class BDMNotFound(NotFound):
    msg_fmt = "BDM not found (id %(id)s)."


class BootFromVolumeRequiredForZeroDiskFlavor(Forbidden):
    msg_fmt = "Boot from volume required for zero disk flavor."


class CannotResizeDisk(NovaException):
    msg_fmt = "Cannot resize disk: %(reason)s"


class CinderAPIVersionNotAvailable(NovaException):
    msg_fmt = "Cinder API version not available (version %(version)s)."


class CinderConnectionFailed(NovaException):
    msg_fmt = "Cinder connection failed: %(reason)s"


class DestinationDiskExists(Invalid):
    msg_fmt = "Destination disk exists (path %(path)s)."


class DeviceBusy(NovaException):
    msg_fmt = "Device busy (file path %(file_path)s)."


class DeviceDeletionException(NovaException):
    msg_fmt = "Device deletion (devpath %(devpath)s, polls %(polls)s, timeout %(timeout)s)."


class DeviceDetachFailed(NovaException):
    msg_fmt = "Device detach failed (device %(device)s): %(reason)s"


class DeviceNotFound(NotFound):
    msg_fmt = "Device not found (device %(device)s)."


class DevicePathInUse(Invalid):
    msg_fmt = "Device path in use (path %(path)s)."
    code = 409


class DeviceProfileError(NovaException):
    msg_fmt = "Device profile (name %(name)s): %(msg)s"


class DiskInfoReadWriteFail(Invalid):
    msg_fmt = "Disk info read write fail: %(reason)s"


class DiskNotFound(NotFound):
    msg_fmt = "Disk not found (location %(location)s)."


class EncryptionFailure(NovaException):
    msg_fmt = "Encryption failure: %(reason)s"


class EphemeralEncryptionCleanupFailed(NovaException):
    msg_fmt = "Ephemeral encryption cleanup failed: %(error)s"


class EphemeralEncryptionSecretNotFound(Invalid):
    msg_fmt = "Ephemeral encryption secret not found (secret uuid %(secret_uuid)s)."


class ExtendVolumeNotSupported(Invalid):
    msg_fmt = "Extend volume not supported."


class ExtendedResourceRequestOldCompute(Invalid):
    msg_fmt = "Extended resource request old compute."


class FlavorDiskTooSmall(NovaException):
    msg_fmt = "The flavor's disk is too small for the image."


class FlavorDiskSmallerThanImage(FlavorDiskTooSmall):
    msg_fmt = "The flavor's disk (%(flavor_size)i bytes) is smaller than the image (%(image_size)i bytes)."


class FlavorDiskSmallerThanMinDisk(FlavorDiskTooSmall):
    msg_fmt = (
        "The flavor's disk (%(flavor_size)i bytes) is smaller than the image's min_disk (%(image_min_disk)i bytes)."
    )


class InstanceDiskMappingFailed(NovaException):
    msg_fmt = "Instance disk mapping failed (instance name %(instance_name)s)."


class InvalidBDM(Invalid):
    msg_fmt = "Invalid BDM."


class InvalidBDMBootSequence(InvalidBDM):
    msg_fmt = "Invalid BDM boot sequence."


class InvalidBDMDiskBus(InvalidBDM):
    msg_fmt = "Invalid BDM disk bus."


class InvalidBDMEphemeralSize(InvalidBDM):
    msg_fmt = "Invalid BDM ephemeral size."


class InvalidBDMForLegacy(InvalidBDM):
    msg_fmt = "Invalid BDM for legacy."


class InvalidBDMFormat(InvalidBDM):
    msg_fmt = "Invalid BDM format (details %(details)s)."


class InvalidBDMImage(InvalidBDM):
    msg_fmt = "Invalid BDM image (id %(id)s)."


class InvalidBDMLocalsLimit(InvalidBDM):
    msg_fmt = "Invalid BDM locals limit."


class InvalidBDMSnapshot(InvalidBDM):
    msg_fmt = "Invalid BDM snapshot (id %(id)s)."


class InvalidBDMSwapSize(InvalidBDM):
    msg_fmt = "Invalid BDM swap size."


class InvalidBDMVolume(InvalidBDM):
    msg_fmt = "Invalid BDM volume (id %(id)s)."


class InvalidBDMVolumeNotBootable(InvalidBDM):
    msg_fmt = "Invalid BDM volume not bootable (id %(id)s)."


class InvalidDevicePath(Invalid):
    msg_fmt = "Invalid device path (path %(path)s)."


class InvalidDiskFormat(Invalid):
    msg_fmt = "Invalid disk format (disk format %(disk_format)s)."


class InvalidDiskInfo(Invalid):
    msg_fmt = "Invalid disk info: %(reason)s"


class InvalidVolume(Invalid):
    msg_fmt = "Invalid volume: %(reason)s"


class InvalidVolumeAccessMode(Invalid):
    msg_fmt = "Invalid volume access mode (access mode %(access_mode)s)."


class MismatchVolumeAZException(Invalid):
    msg_fmt = "Mismatch volume AZ: %(reason)s"
    code = 409


class MultiattachNotSupportedByVirtDriver(NotSupported):
    msg_fmt = "Multiattach not supported by virt driver (volume id %(volume_id)s)."


class MultiattachNotSupportedOldMicroversion(Invalid):
    msg_fmt = "Multiattach not supported old microversion."


class MultiattachSwapVolumeNotSupported(Invalid):
    msg_fmt = "Multiattach swap volume not supported."


class MultiattachToShelvedNotSupported(Invalid):
    msg_fmt = "Multiattach to shelved not supported."


class NoDiskDiscoveryException(NovaException):
    msg_fmt = "No disk discovery (bus %(bus)s, polls %(polls)s, timeout %(timeout)s, udid %(udid)s)."


class SnapshotNotFound(NotFound):
    msg_fmt = "Snapshot not found (snapshot id %(snapshot_id)s)."


class StaleVolumeMount(InvalidVolume):
    msg_fmt = "Stale volume mount (mount path %(mount_path)s)."


class StorageError(NovaException):
    msg_fmt = "Storage failed: %(reason)s"


class TooManyDiskDevices(InvalidBDM):
    msg_fmt = "Too many disk devices (maximum %(maximum)s)."
    code = 403


class UndefinedRootBDM(NovaException):
    msg_fmt = "Undefined root BDM."


class UniqueDiskDiscoveryException(NovaException):
    msg_fmt = "Unique disk discovery (count %(count)s, path pattern %(path_pattern)s)."


class UnsupportedCinderAPIVersion(NovaException):
    msg_fmt = "Unsupported cinder API version (version %(version)s)."


class VolumeAttachFailed(Invalid):
    msg_fmt = "Volume attach failed (volume id %(volume_id)s): %(reason)s"


class VolumeAttachmentNotFound(NotFound):
    msg_fmt = "Volume attachment not found (attachment id %(attachment_id)s)."


class VolumeBDMIsMultiAttach(Invalid):
    msg_fmt = "Volume BDM is multi attach (volume id %(volume_id)s)."


class VolumeBDMNotFound(NotFound):
    msg_fmt = "Volume BDM not found (volume id %(volume_id)s)."


class VolumeBDMPathNotFound(VolumeBDMNotFound):
    msg_fmt = "Volume BDM path not found (path %(path)s)."


class VolumeDetachFailed(Invalid):
    msg_fmt = "Volume detach failed (volume id %(volume_id)s): %(reason)s"


class VolumeDriverNotFound(NotFound):
    msg_fmt = "Volume driver not found (driver type %(driver_type)s)."


class VolumeDriverNotSupported(VolumeDriverNotFound):
    msg_fmt = "Volume driver not supported (volume driver %(volume_driver)s)."


class VolumeEncryptionNotSupported(Invalid):
    msg_fmt = "Volume encryption not supported (volume id %(volume_id)s, volume type %(volume_type)s)."


class VolumeExtendFailed(Invalid):
    msg_fmt = "Volume extend failed (volume id %(volume_id)s): %(reason)s"


class VolumeNotCreated(NovaException):
    msg_fmt = (
        "Volume not created (attempts %(attempts)s, seconds %(seconds)s, volume id %(volume_id)s, "
        "volume status %(volume_status)s)."
    )


class VolumeNotFound(NotFound):
    msg_fmt = "Volume %(volume_id)s could not be found."


class VolumeRebaseFailed(NovaException):
    msg_fmt = "Volume rebase failed: %(reason)s"


class VolumeSmallerThanMinDisk(FlavorDiskTooSmall):
    msg_fmt = "The volume (%(volume_size)i bytes) is smaller than the image's min_disk (%(image_min_disk)i bytes)."


class VolumeTaggedAttachNotSupported(Invalid):
    msg_fmt = "Volume tagged attach not supported."


class VolumeTaggedAttachToShelvedNotSupported(VolumeTaggedAttachNotSupported):
    msg_fmt = "Volume tagged attach to shelved not supported."


class VolumeTypeNotFound(NotFound):
    msg_fmt = "Volume type not found (id or name %(id_or_name)s)."


class VolumesNotRemoved(Invalid):
    msg_fmt = "Volumes not removed: %(reason)s"
