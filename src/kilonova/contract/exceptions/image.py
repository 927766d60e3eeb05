"""Errors of images, firmware choices and config drives."""

from kilonova.contract.exceptions.base import Forbidden, Invalid, NotFound, NovaException


class CertificateValidationFailed(NovaException):
    msg_fmt = "Certificate validation failed (cert uuid %(cert_uuid)s): %(reason)s"


class ConfigDriveInvalidValue(Invalid):
    msg_fmt = "Config drive invalid value (option %(option)s)."


class ConfigDriveMountFailed(NovaException):
    msg_fmt = "Config drive mount failed (operation %(operation)s): %(error)s"


class ConfigDriveNotFound(NotFound):
    msg_fmt = "Config drive not found (instance uuid %(instance_uuid)s)."


class ConfigDriveUnknownFormat(NovaException):
    msg_fmt = "Config drive unknown format (format %(format)s)."


class ConfigDriveUnsupportedFormat(Invalid):
    msg_fmt = "Config drive unsupported format (format %(format)s)."


class CouldNotFetchImage(NovaException):
    msg_fmt = "Could not fetch image (image id %(image_id)s)."


class CouldNotUploadImage(NovaException):
    msg_fmt = "Could not upload image (image id %(image_id)s)."


class FirmwareSMMNotSupported(Invalid):
    msg_fmt = "Firmware SMM not supported."


class FlavorImageConflict(NovaException):
    msg_fmt = "Flavor image conflict (flavor val %(flavor_val)s, image val %(image_val)s, setting %(setting)s)."


class FlavorImageLockedMemoryConflict(FlavorImageConflict):
    msg_fmt = "Flavor image locked memory conflict (flavor %(flavor)s, image %(image)s)."


class GlanceConnectionFailed(NovaException):
    msg_fmt = "Glance connection failed (server %(server)s): %(reason)s"


class ImageBadRequest(Invalid):
    msg_fmt = "Image bad request (image id %(image_id)s): %(response)s"


class ImageCPUPinningForbidden(Forbidden):
    msg_fmt = "Image CPU pinning forbidden."


class ImageCPUThreadPolicyForbidden(Forbidden):
    msg_fmt = "Image CPU thread policy forbidden."


class ImageDeleteConflict(NovaException):
    msg_fmt = "Image delete conflict: %(reason)s"


class ImageImportImpossible(Invalid):
    msg_fmt = "Image import impossible (image id %(image_id)s): %(reason)s"


class ImageNUMATopologyAsymmetric(Invalid):
    msg_fmt = "Image NUMA topology asymmetric."


class ImageNUMATopologyCPUDuplicates(Invalid):
    msg_fmt = "Image NUMA topology CPU duplicates (cpunum %(cpunum)s)."


class ImageNUMATopologyCPUOutOfRange(Invalid):
    msg_fmt = "Image NUMA topology CPU out of range (cpumax %(cpumax)s, cpunum %(cpunum)s)."


class ImageNUMATopologyCPUsUnassigned(Invalid):
    msg_fmt = "Image NUMA topology CP us unassigned (cpuset %(cpuset)s)."


class ImageNUMATopologyForbidden(Forbidden):
    msg_fmt = "Image NUMA topology forbidden (name %(name)s)."


class ImageNUMATopologyIncomplete(Invalid):
    msg_fmt = "Image NUMA topology incomplete."


class ImageNUMATopologyMemoryOutOfRange(Invalid):
    msg_fmt = "Image NUMA topology memory out of range (memsize %(memsize)s, memtotal %(memtotal)s)."


class ImageNUMATopologyRebuildConflict(Invalid):
    msg_fmt = "Image NUMA topology rebuild conflict."


class ImageNotActive(NovaException):
    msg_fmt = "Image %(image_id)s is not active."


class ImageNotAuthorized(NovaException):
    msg_fmt = "Not authorised for image %(image_id)s."


class ImageNotFound(NotFound):
    msg_fmt = "Image %(image_id)s could not be found."


class ImagePCINUMAPolicyForbidden(Forbidden):
    msg_fmt = "Image PCINUMA policy forbidden."


class ImageQuotaExceeded(NovaException):
    msg_fmt = "Image quota exceeded (image id %(image_id)s)."


class ImageUnacceptable(Invalid):
    msg_fmt = "Image %(image_id)s is unacceptable: %(reason)s"


class ImageVCPULimitsRangeExceeded(Invalid):
    msg_fmt = (
        "Image VCPU limits range exceeded (flavor cores %(flavor_cores)s, flavor sockets "
        "%(flavor_sockets)s, flavor threads %(flavor_threads)s, image cores %(image_cores)s, image "
        "sockets %(image_sockets)s, image threads %(image_threads)s)."
    )


class ImageVCPULimitsRangeImpossible(Invalid):
    msg_fmt = (
        "Image VCPU limits range impossible (cores %(cores)s, sockets %(sockets)s, threads %(threads)s, "
        "vcpus %(vcpus)s)."
    )


class ImageVCPUTopologyRangeExceeded(Invalid):
    msg_fmt = (
        "Image VCPU topology range exceeded (image cores %(image_cores)s, image sockets "
        "%(image_sockets)s, image threads %(image_threads)s, max cores %(max_cores)s, max sockets "
        "%(max_sockets)s, max threads %(max_threads)s)."
    )


class InvalidImageConfigDrive(Invalid):
    msg_fmt = "Invalid image config drive (config drive %(config_drive)s)."


class InvalidImageFormat(Invalid):
    msg_fmt = "Invalid image format (format %(format)s)."


class InvalidImagePropertyName(Invalid):
    msg_fmt = "Invalid image property name (image property name %(image_property_name)s)."


class InvalidImageRef(Invalid):
    msg_fmt = "Invalid image ref (image href %(image_href)s)."


class SecureBootNotSupported(Invalid):
    msg_fmt = "Secure boot not supported."


class StatelessFirmwareRequired(Invalid):
    msg_fmt = "Stateless firmware required (feature %(feature)s)."


class UEFINotSupported(Invalid):
    msg_fmt = "UEFI not supported."


class UnsupportedImageModel(Invalid):
    msg_fmt = "Unsupported image model (image %(image)s)."


class UnsupportedRescueImage(Invalid):
    msg_fmt = "Unsupported rescue image (image %(image)s)."
