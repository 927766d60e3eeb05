"""Errors of servers and of what is done to them."""

from __future__ import annotations

from kilonova.contract.exceptions.base import Invalid, NotFound, NotSupported, NovaException


class BuildAbortException(NovaException):
    msg_fmt = "Build of instance %(instance_uuid)s aborted: %(reason)s"


class BuildRequestNotFound(NotFound):
    msg_fmt = "Build request not found (uuid %(uuid)s)."


class ComputeHostMetricNotFound(NotFound):
    msg_fmt = "Compute host metric not found (host %(host)s, name %(name)s, node %(node)s)."


class HostNotFound(NotFound):
    msg_fmt = "Host %(host)s could not be found."


class ComputeHostNotFound(HostNotFound):
    msg_fmt = "Compute host %(host)s could not be found."


class ConsoleLogOutputException(NovaException):
    msg_fmt = "Console log output (instance id %(instance_id)s): %(reason)s"


class ConsoleNotAvailable(NotFound):
    msg_fmt = "The guest has no console now."


class ConsoleTypeInvalid(Invalid):
    msg_fmt = "Console type invalid (console type %(console_type)s)."


class ConsoleTypeUnavailable(Invalid):
    msg_fmt = "Console type unavailable (console type %(console_type)s)."


class HostBinaryNotFound(NotFound):
    msg_fmt = "Host binary not found (binary %(binary)s, host %(host)s)."


class HostConflict(Exception):
    """Host conflict."""


class HostMappingExists(Invalid):
    msg_fmt = "Host mapping exists (name %(name)s)."


class HostMappingNotFound(Invalid):
    msg_fmt = "Host mapping not found (name %(name)s)."


class InstanceActionEventNotFound(NovaException):
    msg_fmt = "Instance action event not found (action id %(action_id)s, event %(event)s)."


class InstanceActionNotFound(NovaException):
    msg_fmt = "Instance %(instance_uuid)s has no action of request %(request_id)s"


class InstanceAgentNotEnabled(Invalid):
    msg_fmt = "Instance agent not enabled."
    safe = True


class InstanceDeployFailure(Invalid):
    msg_fmt = "Instance deploy failure: %(reason)s"


class InstanceEvacuateNotSupported(Invalid):
    msg_fmt = "Instance evacuate not supported."


class InstanceEvacuateNotSupportedTargetState(Invalid):
    msg_fmt = "Instance evacuate not supported target state (target state %(target_state)s)."


class InstanceEventTimeout(Exception):
    """Instance event timeout."""


class InstanceExists(NovaException):
    msg_fmt = "Instance exists (name %(name)s)."


class InstanceFaultRollback(NovaException):
    """Says that the server goes back to the state it had; what really failed is in `inner_exception`."""

    def __init__(self, inner_exception: BaseException | None = None) -> None:
        self.inner_exception = inner_exception
        super().__init__(f"Instance rollback performed due to: {inner_exception}")


class InstanceInfoCacheNotFound(NotFound):
    msg_fmt = "Instance info cache not found (instance uuid %(instance_uuid)s)."


class InstanceInvalidState(Invalid):
    msg_fmt = "Cannot %(method)s instance %(instance_uuid)s while it is in %(attr)s %(state)s"


class InstanceIsLocked(InstanceInvalidState):
    msg_fmt = "Instance %(instance_uuid)s is locked"


class InstanceMappingNotFound(NotFound):
    msg_fmt = "Instance mapping not found (uuid %(uuid)s)."


class InstanceNotFound(NotFound):
    msg_fmt = "Instance %(instance_id)s could not be found."


class InstanceNotInRescueMode(Invalid):
    msg_fmt = "Instance not in rescue mode (instance id %(instance_id)s)."


class InstanceNotReady(Invalid):
    msg_fmt = "Instance %(instance_id)s is not ready."


class InstanceNotRescuable(Invalid):
    msg_fmt = "Instance not rescuable (instance id %(instance_id)s): %(reason)s"


class InstanceNotRunning(Invalid):
    msg_fmt = "Instance %(instance_id)s is not running."


class InstancePasswordSetFailed(NovaException):
    msg_fmt = "Instance password set failed (instance %(instance)s): %(reason)s"
    safe = True


class InstancePowerOffFailure(Invalid):
    msg_fmt = "Instance power off failure: %(reason)s"


class InstancePowerOnFailure(Invalid):
    msg_fmt = "Instance power on failure: %(reason)s"


class InstanceQuiesceFailed(Invalid):
    msg_fmt = "Instance quiesce failed: %(reason)s"
    code = 409


class InstanceQuiesceNotSupported(Invalid):
    msg_fmt = "Instance quiesce not supported (instance id %(instance_id)s)."


class InstanceRebootFailure(Invalid):
    msg_fmt = "Instance reboot failure: %(reason)s"


class InstanceRescueFailure(NovaException):
    msg_fmt = "Instance rescue failure: %(reason)s"


class InstanceResumeFailure(Invalid):
    msg_fmt = "Instance resume failure: %(reason)s"


class InstanceSuspendFailure(Invalid):
    msg_fmt = "Instance suspend failure: %(reason)s"


class InstanceTagNotFound(NotFound):
    msg_fmt = "Instance %(instance_id)s has no tag '%(tag)s'"


class InstanceTerminationFailure(Invalid):
    msg_fmt = "Instance termination failure: %(reason)s"


class InstanceUnRescueFailure(NovaException):
    msg_fmt = "Instance un rescue failure: %(reason)s"


class InstanceUnacceptable(Invalid):
    msg_fmt = "Instance unacceptable (instance id %(instance_id)s): %(reason)s"


class InstanceUpdateConflict(NovaException):
    msg_fmt = "Instance %(instance_uuid)s was changed meanwhile: %(actual)s where %(expected)s was expected"


class InstanceUserDataMalformed(NovaException):
    msg_fmt = "Instance user data malformed."


class InvalidHostname(Invalid):
    msg_fmt = "Invalid hostname (hostname %(hostname)s)."


class InvalidMigrationState(Invalid):
    msg_fmt = (
        "Invalid migration state (instance uuid %(instance_uuid)s, method %(method)s, migration id "
        "%(migration_id)s, state %(state)s)."
    )


class InvalidMixedInstanceDedicatedMask(Invalid):
    msg_fmt = "Invalid mixed instance dedicated mask."


class LiveMigrationNotSubmitted(NovaException):
    msg_fmt = "Live migration not submitted (instance uuid %(instance_uuid)s, migration uuid %(migration_uuid)s)."


class LiveMigrationURINotAvailable(NovaException):
    msg_fmt = "Live migration URI not available (virt type %(virt_type)s)."


class NoValidHost(NovaException):
    msg_fmt = "No valid host was found. %(reason)s"
    refusal = True


class MaxRetriesExceeded(NoValidHost):
    msg_fmt = "All attempts to find a host are used up. %(reason)s"


class MigrationContextNotFound(NotFound):
    msg_fmt = "Migration context not found (instance uuid %(instance_uuid)s)."


class MigrationError(NovaException):
    msg_fmt = "Migration: %(reason)s"


class MigrationNotFound(NotFound):
    msg_fmt = "Migration not found (migration id %(migration_id)s)."


class MigrationNotFoundByStatus(MigrationNotFound):
    msg_fmt = "Migration not found by status (instance id %(instance_id)s, status %(status)s)."


class MigrationNotFoundForInstance(MigrationNotFound):
    msg_fmt = "Migration not found for instance (instance id %(instance_id)s, migration id %(migration_id)s)."


class MigrationPreCheckError(MigrationError):
    msg_fmt = "Migration pre check: %(reason)s"


class MigrationSchedulerRPCError(MigrationError):
    msg_fmt = "Migration scheduler RPC: %(reason)s"


class MixedInstanceNotSupportByComputeService(NovaException):
    msg_fmt = "Mixed instance not support by compute service."


class NoActiveMigrationForInstance(NotFound):
    msg_fmt = "No active migration for instance (instance id %(instance_id)s)."


class ObjectActionError(NovaException):
    msg_fmt = "Object action (action %(action)s): %(reason)s"


class OperationNotSupportedForMemEncryption(NotSupported):
    msg_fmt = "Operation not supported for mem encryption (instance uuid %(instance_uuid)s, operation %(operation)s)."


class OperationNotSupportedForVDPAInterface(NotSupported):
    msg_fmt = "Operation not supported for VDPA interface (operation %(operation)s)."


class PreserveEphemeralNotSupported(Invalid):
    msg_fmt = "Preserve ephemeral not supported."


class QemuGuestAgentNotEnabled(InstanceAgentNotEnabled):
    msg_fmt = "Qemu guest agent not enabled."


class ReimageException(NovaException):
    msg_fmt = "Reimage."


class RequestFilterFailed(NovaException):
    msg_fmt = "Request filter failed: %(reason)s"


class RequestSpecNotFound(NotFound):
    msg_fmt = "Request spec not found (instance uuid %(instance_uuid)s)."


class RescheduledException(NovaException):
    msg_fmt = "Build of instance %(instance_uuid)s is tried again elsewhere: %(reason)s"


class RescheduledByPolicyException(RescheduledException):
    msg_fmt = "Rescheduled by policy (instance uuid %(instance_uuid)s): %(reason)s"


class ResizeError(NovaException):
    msg_fmt = "Resize failed: %(reason)s"


class SchedulerHostFilterNotFound(NotFound):
    msg_fmt = "Scheduler host filter not found (filter name %(filter_name)s)."


class SetAdminPasswdNotSupported(Invalid):
    msg_fmt = "Set admin passwd not supported."
    safe = True


class TokenInUse(Invalid):
    msg_fmt = "Token in use."


class TriggerCrashDumpNotSupported(Invalid):
    msg_fmt = "Trigger crash dump not supported."


class UnableToMigrateToSelf(Invalid):
    msg_fmt = "Unable to migrate to self (host %(host)s, instance id %(instance_id)s)."


class UnexpectedTaskStateError(InstanceUpdateConflict):
    msg_fmt = "Instance %(instance_uuid)s has task_state %(actual)s where %(expected)s was expected"


class UnexpectedDeletingTaskStateError(UnexpectedTaskStateError):
    msg_fmt = "Instance %(instance_uuid)s is being deleted: task_state %(actual)s where %(expected)s was expected"


class UnknownInstanceUpdateConflict(InstanceUpdateConflict):
    msg_fmt = "Instance %(instance_uuid)s was changed meanwhile by something unknown"


class UnshelveException(NovaException):
    msg_fmt = "Unshelve (instance id %(instance_id)s): %(reason)s"


class UnshelveHostNotInAZ(Invalid):
    msg_fmt = "Unshelve host not in AZ (availability zone %(availability_zone)s, host %(host)s)."
    code = 409


class UnshelveInstanceInvalidState(InstanceInvalidState):
    msg_fmt = "Unshelve instance invalid state (instance uuid %(instance_uuid)s, state %(state)s)."
    code = 409
