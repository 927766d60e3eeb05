"""Errors of networks, ports, addresses and security groups."""

from kilonova.contract.exceptions.base import Forbidden, Invalid, NotFound, NotSupported, NovaException, OverQuota


class AttachInterfaceNotSupported(Invalid):
    msg_fmt = "Attach interface not supported (instance uuid %(instance_uuid)s)."


class AttachInterfaceWithQoSPolicyNotSupported(AttachInterfaceNotSupported):
    msg_fmt = "Attach interface with qo s policy not supported (instance uuid %(instance_uuid)s)."


class AttachSRIOVPortNotSupported(Invalid):
    msg_fmt = "Attach SRIOV port not supported (instance uuid %(instance_uuid)s, port id %(port_id)s)."


class AttachWithExtendedQoSPolicyNotSupported(AttachInterfaceNotSupported):
    msg_fmt = "Attach with extended qo s policy not supported."


class ConsolePortRangeExhausted(NovaException):
    msg_fmt = "Console port range exhausted (max port %(max_port)s, min port %(min_port)s)."


class CreateWithPortResourceRequestOldVersion(Invalid):
    msg_fmt = "Create with port resource request old version."


class ExternalNetworkAttachForbidden(Forbidden):
    msg_fmt = "External network attach forbidden (network uuid %(network_uuid)s)."


class FixedIpAlreadyInUse(NovaException):
    msg_fmt = "Fixed ip already in use (address %(address)s, instance uuid %(instance_uuid)s)."


class FixedIpAssociatedWithMultipleInstances(NovaException):
    msg_fmt = "Fixed ip associated with multiple instances (address %(address)s)."


class FixedIpInvalidOnHost(Invalid):
    msg_fmt = "Fixed ip invalid on host (port id %(port_id)s)."


class FixedIpNotFoundForAddress(NotFound):
    msg_fmt = "Fixed ip not found for address (address %(address)s)."


class FixedIpNotFoundForInstance(NotFound):
    msg_fmt = "Fixed ip not found for instance (instance uuid %(instance_uuid)s, ip %(ip)s)."


class FloatingIpAssociateFailed(NovaException):
    msg_fmt = "Floating ip associate failed (address %(address)s)."


class FloatingIpAssociated(NovaException):
    msg_fmt = "Floating ip associated (address %(address)s)."


class FloatingIpBadRequest(Invalid):
    msg_fmt = "Floating ip bad request."


class FloatingIpLimitExceeded(OverQuota):
    msg_fmt = "Floating ip limit exceeded."


class FloatingIpMultipleFoundForAddress(NovaException):
    msg_fmt = "Floating ip multiple found for address (address %(address)s)."


class FloatingIpNotFound(NotFound):
    msg_fmt = "Floating ip not found (id %(id)s)."


class FloatingIpNotFoundForAddress(FloatingIpNotFound):
    msg_fmt = "Floating ip not found for address (address %(address)s)."


class FloatingIpPoolNotFound(NotFound):
    msg_fmt = "Floating ip pool not found."
    safe = True


class ForbiddenPortsWithAccelerator(NotSupported):
    msg_fmt = "Forbidden ports with accelerator."


class ForbiddenWithRemoteManagedPorts(NotSupported):
    msg_fmt = "Forbidden with remote managed ports."


class HealPortAllocationException(NovaException):
    msg_fmt = "Heal port allocation."


class ImageSerialPortNumberExceedFlavorValue(Invalid):
    msg_fmt = "Image serial port number exceed flavor value."


class ImageSerialPortNumberInvalid(Invalid):
    msg_fmt = "Image serial port number invalid (num ports %(num_ports)s)."


class InterfaceAttachFailed(NovaException):
    msg_fmt = "Interface attach failed (instance uuid %(instance_uuid)s)."


class InterfaceAttachFailedNoNetwork(Invalid):
    msg_fmt = "Interface attach failed no network (project id %(project_id)s)."


class InterfaceAttachPciClaimFailed(Invalid):
    msg_fmt = "Interface attach pci claim failed (instance uuid %(instance_uuid)s)."


class InterfaceAttachResourceAllocationFailed(Invalid):
    msg_fmt = "Interface attach resource allocation failed (instance uuid %(instance_uuid)s)."


class InterfaceDetachFailed(Invalid):
    msg_fmt = "Interface detach failed (instance uuid %(instance_uuid)s)."


class InvalidCidr(Invalid):
    msg_fmt = "Invalid cidr (cidr %(cidr)s)."


class InvalidFixedIpAndMaxCountRequest(Invalid):
    msg_fmt = "Invalid fixed ip and max count request: %(reason)s"


class InvalidIpAddressError(Invalid):
    msg_fmt = "Invalid ip address (address %(address)s)."


class InvalidIpProtocol(Invalid):
    msg_fmt = "Invalid ip protocol (protocol %(protocol)s)."


class InvalidNetworkNUMAAffinity(Invalid):
    msg_fmt = "Invalid network NUMA affinity: %(reason)s"


class InvalidPortRange(Invalid):
    msg_fmt = "Invalid port range (from port %(from_port)s, to port %(to_port)s): %(msg)s"


class InvalidRoutedNetworkConfiguration(NovaException):
    msg_fmt = "Invalid routed network configuration: %(reason)s"


class MultiplePortsNotApplicable(Invalid):
    msg_fmt = "Multiple ports not applicable: %(reason)s"


class NetworkAmbiguous(Invalid):
    msg_fmt = "Several networks are possible: name the networks to use."


class NetworkInterfaceTaggedAttachNotSupported(Invalid):
    msg_fmt = "Network interface tagged attach not supported."


class NetworkMissingPhysicalNetwork(NovaException):
    msg_fmt = "Network missing physical network (network uuid %(network_uuid)s)."


class NetworkNotFound(NotFound):
    msg_fmt = "Network %(network_id)s could not be found."


class NetworkNotFoundForBridge(NetworkNotFound):
    msg_fmt = "Network not found for bridge (bridge %(bridge)s)."


class NetworkNotFoundForInstance(NetworkNotFound):
    msg_fmt = "Network not found for instance (instance id %(instance_id)s)."


class NetworkRequiresSubnet(Invalid):
    msg_fmt = "Network requires subnet (network uuid %(network_uuid)s)."


class NetworksWithQoSPolicyNotSupported(Invalid):
    msg_fmt = "Networks with qo s policy not supported (instance uuid %(instance_uuid)s, network id %(network_id)s)."


class NoMoreFixedIps(NovaException):
    msg_fmt = "No more fixed ips (net %(net)s)."


class NoMoreFloatingIps(FloatingIpNotFound):
    msg_fmt = "No more floating ips."
    safe = True


class PortBindingActivationFailed(NovaException):
    msg_fmt = "Port binding activation failed (host %(host)s, port id %(port_id)s)."


class PortBindingDeletionFailed(NovaException):
    msg_fmt = "Port binding deletion failed (host %(host)s, port id %(port_id)s)."


class PortBindingFailed(Invalid):
    msg_fmt = "Port binding failed (port id %(port_id)s)."


class PortInUse(Invalid):
    msg_fmt = "Port %(port_id)s is in use by another server."


class PortLimitExceeded(OverQuota):
    msg_fmt = "Port limit exceeded."


class PortNotFound(NotFound):
    msg_fmt = "Port %(port_id)s could not be found."


class PortNotUsable(Invalid):
    msg_fmt = "Port %(port_id)s cannot be used by instance %(instance)s."


class PortNotUsableDNS(Invalid):
    msg_fmt = (
        "Port not usable DNS (hostname %(hostname)s, instance %(instance)s, port id %(port_id)s, value %(value)s)."
    )


class PortRequiresFixedIP(Invalid):
    msg_fmt = "Port requires fixed IP (port id %(port_id)s)."


class PortUpdateFailed(Invalid):
    msg_fmt = "Port update failed (port id %(port_id)s): %(reason)s"


class SecurityGroupCannotBeApplied(Invalid):
    msg_fmt = "Security group cannot be applied."


class SecurityGroupConnectionStateConflict(Invalid):
    msg_fmt = "Security group connection state conflict."
    code = 409


class SecurityGroupExists(Invalid):
    msg_fmt = "Security group exists (project id %(project_id)s, security group name %(security_group_name)s)."


class SecurityGroupLimitExceeded(OverQuota):
    msg_fmt = "Security group limit exceeded."


class SecurityGroupNotFound(NotFound):
    msg_fmt = "Security group %(security_group_id)s not found."


class SecurityGroupNotFoundForProject(SecurityGroupNotFound):
    msg_fmt = (
        "Security group not found for project (project id %(project_id)s, security group id %(security_group_id)s)."
    )


class SerialPortNumberLimitExceeded(Invalid):
    msg_fmt = "Serial port number limit exceeded (allowed %(allowed)s, virt type %(virt_type)s)."


class SocketPortInUseException(NovaException):
    msg_fmt = "Socket port in use (host %(host)s, port %(port)s): %(error)s"


class SocketPortRangeExhaustedException(NovaException):
    msg_fmt = "Socket port range exhausted (host %(host)s)."


class UnableToAutoAllocateNetwork(Invalid):
    msg_fmt = "Unable to auto allocate network (project id %(project_id)s)."


class UnableToQueryPorts(HealPortAllocationException):
    msg_fmt = "Unable to query ports (instance uuid %(instance_uuid)s): %(error)s"


class UnableToRollbackPortUpdates(HealPortAllocationException):
    msg_fmt = "Unable to rollback port updates (port uuids %(port_uuids)s): %(error)s"


class UnableToUpdatePorts(HealPortAllocationException):
    msg_fmt = "Unable to update ports: %(error)s"


class VifDetailsMissingMacvtapParameters(Invalid):
    msg_fmt = "Vif details missing macvtap parameters (missing params %(missing_params)s, vif id %(vif_id)s)."


class VifDetailsMissingVhostuserSockPath(Invalid):
    msg_fmt = "Vif details missing vhostuser sock path (vif id %(vif_id)s)."


class VirtualInterfaceCreateException(NovaException):
    msg_fmt = "Virtual interface create."


class VirtualInterfaceMacAddressException(NovaException):
    msg_fmt = "Virtual interface mac address."


class VirtualInterfacePlugException(NovaException):
    msg_fmt = "Virtual interface plug."


class VirtualInterfaceUnplugException(NovaException):
    msg_fmt = "Virtual interface unplug: %(reason)s"
