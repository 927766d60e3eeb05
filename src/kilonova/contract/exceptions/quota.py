"""Errors of quotas and limits."""

from kilonova.contract.exceptions.base import Invalid, NotFound, NovaException, OverQuota


class GroupMemberLimitExceeded(OverQuota):
    msg_fmt = "Group member limit exceeded."


class InvalidQuotaMethodUsage(Invalid):
    msg_fmt = "Invalid quota method usage (method %(method)s, res %(res)s)."


class InvalidQuotaValue(Invalid):
    msg_fmt = "Invalid quota value (unders %(unders)s)."


class KeypairLimitExceeded(OverQuota):
    msg_fmt = "Keypair limit exceeded."


class MetadataLimitExceeded(OverQuota):
    msg_fmt = "Metadata limit exceeded (allowed %(allowed)s)."


class OnsetFileLimitExceeded(OverQuota):
    msg_fmt = "Onset file limit exceeded."


class OnsetFileContentLimitExceeded(OnsetFileLimitExceeded):
    msg_fmt = "Onset file content limit exceeded (allowed %(allowed)s)."


class OnsetFilePathLimitExceeded(OnsetFileLimitExceeded):
    msg_fmt = "Onset file path limit exceeded (allowed %(allowed)s)."


class QuotaNotFound(NotFound):
    msg_fmt = "Quota not found."


class ProjectQuotaNotFound(QuotaNotFound):
    msg_fmt = "Project quota not found (project id %(project_id)s)."


class ProjectUserQuotaNotFound(QuotaNotFound):
    msg_fmt = "Project user quota not found (project id %(project_id)s, user id %(user_id)s)."


class QuotaClassExists(NovaException):
    msg_fmt = "Quota class exists (class name %(class_name)s, resource %(resource)s)."


class QuotaClassNotFound(QuotaNotFound):
    msg_fmt = "Quota class not found (class name %(class_name)s)."


class QuotaExists(NovaException):
    msg_fmt = "Quota exists (project id %(project_id)s, resource %(resource)s)."


class QuotaResourceUnknown(QuotaNotFound):
    msg_fmt = "Quota resource unknown (unknown %(unknown)s)."


class ServerGroupLimitExceeded(OverQuota):
    msg_fmt = "Server group limit exceeded."


class TooManyComputesForHost(NovaException):
    msg_fmt = "Too many computes for host (host %(host)s, num computes %(num_computes)s)."


class TooManyInstances(OverQuota):
    msg_fmt = "Quota exceeded for %(overs)s: requested %(req)s, already used %(used)s of %(allowed)s"
