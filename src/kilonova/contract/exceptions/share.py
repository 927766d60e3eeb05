"""Errors of shared file systems."""

from kilonova.contract.exceptions.base import NotFound, NotSupported, NovaException


class ForbiddenSharesNotConfiguredCorrectly(NotSupported):
    msg_fmt = "Forbidden shares not configured correctly."


class ForbiddenSharesNotSupported(NotSupported):
    msg_fmt = "Forbidden shares not supported."


class ForbiddenWithShare(NotSupported):
    msg_fmt = "Forbidden with share."


class InvalidSharedStorage(NovaException):
    msg_fmt = "Invalid shared storage (path %(path)s): %(reason)s"


class ShareAccessGrantError(NovaException):
    msg_fmt = "Share access grant (share id %(share_id)s): %(reason)s"


class ShareAccessNotFound(NotFound):
    msg_fmt = "Share access not found (share id %(share_id)s)."


class ShareAccessRemovalError(NovaException):
    msg_fmt = "Share access removal (share id %(share_id)s): %(reason)s"


class ShareError(NovaException):
    msg_fmt = "Share failed (instance uuid %(instance_uuid)s, share id %(share_id)s)."


class ShareErrorUnexpectedStatus(NovaException):
    msg_fmt = "Share error unexpected status (instance uuid %(instance_uuid)s, share id %(share_id)s)."


class ShareLockAlreadyExists(NovaException):
    msg_fmt = "Share lock already exists (share id %(share_id)s)."


class ShareLockError(NovaException):
    msg_fmt = "Share lock (share id %(share_id)s): %(reason)s"


class ShareLockNotFound(NovaException):
    msg_fmt = "Share lock not found (share id %(share_id)s)."


class ShareMappingAlreadyExists(NotFound):
    msg_fmt = "Share mapping already exists (share id %(share_id)s, tag %(tag)s)."


class ShareMissingExportLocation(NotFound):
    msg_fmt = "Share missing export location (share id %(share_id)s)."


class ShareMountError(NovaException):
    msg_fmt = "Share mount (server id %(server_id)s, share id %(share_id)s): %(reason)s"


class ShareNotFound(NotFound):
    msg_fmt = "Share not found (share id %(share_id)s)."


class ShareProtocolNotSupported(NotFound):
    msg_fmt = "Share protocol not supported (share proto %(share_proto)s)."


class ShareStatusIncorect(NotFound):
    msg_fmt = "Share status incorect (share id %(share_id)s, status %(status)s)."


class ShareUmountError(NovaException):
    msg_fmt = "Share umount (server id %(server_id)s, share id %(share_id)s): %(reason)s"


class ShareUnlockError(NovaException):
    msg_fmt = "Share unlock (share id %(share_id)s): %(reason)s"
