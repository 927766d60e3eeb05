"""Errors of other services, of configuration and of formats."""

from kilonova.contract.exceptions.base import Invalid, NotFound, NovaException


class ApiVersionsIntersect(Invalid):
    msg_fmt = "Api versions intersect (max ver %(max_ver)s, min ver %(min_ver)s, name %(name)s)."


class Base64Exception(NovaException):
    msg_fmt = "Base64 (path %(path)s)."


class ClassNotFound(NotFound):
    msg_fmt = "Class not found (class name %(class_name)s): %(exception)s"


class ConfigNotFound(NovaException):
    msg_fmt = "Config not found (path %(path)s)."


class ConstraintNotMet(NovaException):
    msg_fmt = "Constraint not met."
    code = 412


class DatastoreNotFound(NotFound):
    msg_fmt = "Datastore not found."


class FileNotFound(NotFound):
    msg_fmt = "File not found (file path %(file_path)s)."


class InvalidAPIVersionString(Invalid):
    msg_fmt = "API Version String %(version)s is of invalid format. Must be of format MajorNum.MinorNum."


class InvalidArchitectureName(Invalid):
    msg_fmt = "Invalid architecture name (arch %(arch)s)."


class InvalidAttribute(Invalid):
    msg_fmt = "Invalid attribute (attr %(attr)s)."


class InvalidConfiguration(Invalid):
    msg_fmt = "Invalid configuration."


class InvalidConnectionInfo(Invalid):
    msg_fmt = "Invalid connection info."


class InvalidContentType(Invalid):
    msg_fmt = "Invalid content type (content type %(content_type)s)."


class InvalidGlobalAPIVersion(Invalid):
    msg_fmt = "Version %(req_ver)s is not supported by the API. Minimum is %(min_ver)s and maximum is %(max_ver)s."


class InvalidID(Invalid):
    msg_fmt = "Invalid ID (id %(id)s)."


class InvalidLibvirtMdevConfig(NovaException):
    msg_fmt = "Invalid libvirt mdev config: %(reason)s"


class InvalidLocalStorage(NovaException):
    msg_fmt = "Invalid local storage (path %(path)s): %(reason)s"


class InvalidMetadata(Invalid):
    msg_fmt = "Invalid metadata: %(reason)s"


class InvalidMetadataSize(Invalid):
    msg_fmt = "Invalid metadata size: %(reason)s"


class InvalidName(Invalid):
    msg_fmt = "Invalid name: %(reason)s"


class InvalidNodeConfiguration(NovaException):
    msg_fmt = "Invalid node configuration: %(reason)s"


class InvalidParameterValue(Invalid):
    msg_fmt = "Invalid parameter value: %(err)s"


class InvalidPeerList(NovaException):
    msg_fmt = "Invalid peer list (host %(host)s)."


class InvalidRequest(Invalid):
    msg_fmt = "Invalid request."


class InvalidReservedMemoryPagesOption(Invalid):
    msg_fmt = "Invalid reserved memory pages option (conf %(conf)s)."


class InvalidSortKey(Invalid):
    msg_fmt = "Invalid sort key."


class InvalidStrTime(Invalid):
    msg_fmt = "Invalid str time: %(reason)s"


class InvalidToken(Invalid):
    msg_fmt = "Invalid token (token %(token)s)."


class InvalidVIOMMUArchitecture(Invalid):
    msg_fmt = "Invalid VIOMMU architecture (arch %(arch)s)."


class InvalidVIOMMUMachineType(Invalid):
    msg_fmt = "Invalid VIOMMU machine type (arch %(arch)s, mtype %(mtype)s)."


class InvalidVirtualMachineMode(Invalid):
    msg_fmt = "Invalid virtual machine mode (vmmode %(vmmode)s)."


class InvalidWatchdogAction(Invalid):
    msg_fmt = "Invalid watchdog action (action %(action)s)."


class IronicAPIVersionNotAvailable(NovaException):
    msg_fmt = "Ironic API version not available (version %(version)s)."


class KeyManagerError(NovaException):
    msg_fmt = "Key manager: %(reason)s"


class KeystoneConnectionFailed(NovaException):
    msg_fmt = "Keystone connection failed: %(reason)s"


class LibguestfsCannotReadKernel(Invalid):
    msg_fmt = "Libguestfs cannot read kernel."


class LockMemoryForbidden(Invalid):
    msg_fmt = "Lock memory forbidden."


class MalformedRequestBody(NovaException):
    msg_fmt = "Malformed request body: %(reason)s"


class ManilaConnectionFailed(NovaException):
    msg_fmt = "Manila connection failed: %(reason)s"


class NeutronAdminCredentialConfigurationInvalid(Invalid):
    msg_fmt = "Neutron admin credential configuration invalid."


class NewMgmtMappingNotFoundException(NovaException):
    msg_fmt = "New mgmt mapping not found (stg name %(stg_name)s, vios name %(vios_name)s)."


class NoFloatingIpInterface(NotFound):
    msg_fmt = "No floating ip interface (interface %(interface)s)."


class NoResourceClass(NovaException):
    msg_fmt = "No resource class (node %(node)s)."


class NoUniqueMatch(NovaException):
    msg_fmt = "No unique match."
    code = 409


class NotSupportedWithOption(Invalid):
    msg_fmt = "Not supported with option (operation %(operation)s, option %(option)s)."


class NumaTopologyNotFound(NotFound):
    msg_fmt = "Numa topology not found (instance uuid %(instance_uuid)s)."


class OptRequiredIfOtherOptValue(NovaException):
    msg_fmt = "Opt required if other opt value (if opt %(if_opt)s, if value %(if_value)s, then opt %(then_opt)s)."


class OrphanedObjectError(NovaException):
    msg_fmt = "Orphaned object (method %(method)s, objtype %(objtype)s)."


class OsInfoNotFound(NotFound):
    msg_fmt = "Os info not found (os name %(os_name)s)."


class PMEMNamespaceConfigInvalid(NovaException):
    msg_fmt = "PMEM namespace config invalid: %(reason)s"


class PasteAppNotFound(NovaException):
    msg_fmt = "Paste app not found (name %(name)s, path %(path)s)."


class RFBAuthHandshakeFailed(NovaException):
    msg_fmt = "RFB auth handshake failed: %(reason)s"


class RFBAuthNoAvailableScheme(NovaException):
    msg_fmt = "RFB auth no available scheme (allowed types %(allowed_types)s, desired types %(desired_types)s)."


class ResourceMonitorError(NovaException):
    msg_fmt = "Resource monitor (monitor %(monitor)s)."


class SecurityProxyNegotiationFailed(NovaException):
    msg_fmt = "Security proxy negotiation failed: %(reason)s"


class VersionNotFoundForAPIMethod(Invalid):
    msg_fmt = "API version %(version)s is not supported on this method."


class ZVMDriverException(NovaException):
    msg_fmt = "ZVM driver: %(error)s"


class ZVMConnectorError(ZVMDriverException):
    msg_fmt = "ZVM connector (results %(results)s)."
