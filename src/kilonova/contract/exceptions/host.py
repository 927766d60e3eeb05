"""Errors of hosts, services, cells and tasks."""

from kilonova.contract.exceptions.base import Invalid, NotFound, NotSupported, NovaException, ServiceUnavailable


class CellMappingNotFound(NotFound):
    msg_fmt = "Cell mapping not found (uuid %(uuid)s)."


class CellTimeout(NotFound):
    msg_fmt = "Cell timeout."


class ComputeResourcesUnavailable(ServiceUnavailable):
    msg_fmt = "Not enough compute resources: %(reason)s."
    refusal = True


class ComputeServiceInUse(NovaException):
    msg_fmt = "Compute service in use (host %(host)s)."


class ComputeServiceUnavailable(ServiceUnavailable):
    msg_fmt = "Compute service of %(host)s is not up."


class ServiceNotFound(NotFound):
    msg_fmt = "Service %(service_id)s could not be found."


class ConfGroupForServiceTypeNotFound(ServiceNotFound):
    msg_fmt = "Conf group for service type not found (stype %(stype)s)."


class DBNotAllowed(NovaException):
    msg_fmt = "DB not allowed (binary %(binary)s)."


class DuplicateRecord(NovaException):
    msg_fmt = "Duplicate record (target %(target)s)."


class NotSupportedComputeForEvacuateV295(NotSupported):
    msg_fmt = "Not supported compute for evacuate V295 (currently %(currently)s, expected %(expected)s)."


class SelectionObjectsWithOldRPCVersionNotSupported(NovaException):
    msg_fmt = "Selection objects with old RPC version not supported (version %(version)s)."


class ServiceBinaryExists(NovaException):
    msg_fmt = "Service binary exists (binary %(binary)s, host %(host)s)."


class ServiceNotUnique(Invalid):
    msg_fmt = "Service not unique."


class ServiceTooOld(Invalid):
    msg_fmt = "This service has version %(thisver)i, but the oldest one allowed is %(minver)i."


class ServiceTopicExists(NovaException):
    msg_fmt = "Service topic exists (host %(host)s, topic %(topic)s)."


class TaskAlreadyRunning(NovaException):
    msg_fmt = "Task already running (host %(host)s, task name %(task_name)s)."


class TaskNotRunning(NovaException):
    msg_fmt = "Task not running (host %(host)s, task name %(task_name)s)."


class TooOldComputeService(Invalid):
    msg_fmt = (
        "Too old compute service (min service level %(min_service_level)s, oldest supported service "
        "%(oldest_supported_service)s, oldest supported version %(oldest_supported_version)s, scope "
        "%(scope)s)."
    )
