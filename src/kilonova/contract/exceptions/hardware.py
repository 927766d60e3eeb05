"""Errors of CPUs, NUMA, PCI devices and hypervisors."""

from kilonova.contract.exceptions.base import Forbidden, Invalid, NotFound, NotSupported, NovaException


class AcceleratorRequestBindingFailed(NovaException):
    msg_fmt = "Accelerator request binding failed: %(msg)s"


class AcceleratorRequestOpFailed(NovaException):
    msg_fmt = "Accelerator request op failed (op %(op)s): %(msg)s"


class BadRequirementEmulatorThreadsPolicy(Invalid):
    msg_fmt = "Bad requirement emulator threads policy."


class CPUPinningInvalid(Invalid):
    msg_fmt = "CPU pinning invalid (available %(available)s, requested %(requested)s)."


class CPUPinningUnknown(Invalid):
    msg_fmt = "CPU pinning unknown (available %(available)s, requested %(requested)s)."


class CPUThreadPolicyConfigurationInvalid(Invalid):
    msg_fmt = "CPU thread policy configuration invalid."


class CPUUnpinningInvalid(Invalid):
    msg_fmt = "CPU unpinning invalid (available %(available)s, requested %(requested)s)."


class CPUUnpinningUnknown(Invalid):
    msg_fmt = "CPU unpinning unknown (available %(available)s, requested %(requested)s)."


class DestinationHypervisorTooOld(Invalid):
    msg_fmt = "Destination hypervisor too old."


class ForbiddenWithAccelerators(NotSupported):
    msg_fmt = "Forbidden with accelerators."


class GetPMEMNamespacesFailed(NovaException):
    msg_fmt = "Get PMEM namespaces failed: %(reason)s"


class HypervisorTooOld(Invalid):
    msg_fmt = "Hypervisor too old (version %(version)s)."


class HypervisorUnavailable(NovaException):
    msg_fmt = "No connection to the hypervisor of this host."


class InvalidCPUAllocationPolicy(Invalid):
    msg_fmt = "Invalid CPU allocation policy (available %(available)s, requested %(requested)s, source %(source)s)."


class InvalidCPUInfo(Invalid):
    msg_fmt = "Invalid CPU info: %(reason)s"


class InvalidCPUThreadAllocationPolicy(Invalid):
    msg_fmt = (
        "Invalid CPU thread allocation policy (available %(available)s, requested %(requested)s, source %(source)s)."
    )


class InvalidEmulatorThreadsPolicy(Invalid):
    msg_fmt = "Invalid emulator threads policy (available %(available)s, requested %(requested)s)."


class InvalidHypervisorType(Invalid):
    msg_fmt = "Invalid hypervisor type."


class InvalidHypervisorVirtType(Invalid):
    msg_fmt = "Invalid hypervisor virt type (hv type %(hv_type)s)."


class InvalidMachineType(Invalid):
    msg_fmt = "Invalid machine type (image id %(image_id)s, image name %(image_name)s, mtype %(mtype)s): %(reason)s"


class InvalidMachineTypeUpdate(Invalid):
    msg_fmt = (
        "Invalid machine type update (existing machine type %(existing_machine_type)s, machine type %(machine_type)s)."
    )


class InvalidNUMANodesNumber(Invalid):
    msg_fmt = "Invalid NUMA nodes number (nodes %(nodes)s)."


class InvalidPCINUMAAffinity(Invalid):
    msg_fmt = "Invalid PCINUMA affinity (policy %(policy)s)."


class InvalidVideoMode(Invalid):
    msg_fmt = "Invalid video mode (model %(model)s)."


class MemoryPageSizeForbidden(Invalid):
    msg_fmt = "Memory page size forbidden (against %(against)s, pagesize %(pagesize)s)."


class MemoryPageSizeInvalid(Invalid):
    msg_fmt = "Memory page size invalid (pagesize %(pagesize)s)."


class MemoryPageSizeNotSupported(Invalid):
    msg_fmt = "Memory page size not supported (pagesize %(pagesize)s)."


class MemoryPagesUnsupported(Invalid):
    msg_fmt = "Memory pages unsupported."


class NUMATopologyUnsupported(Invalid):
    msg_fmt = "NUMA topology unsupported."


class OperationNotSupportedForVTPM(NotSupported):
    msg_fmt = "Operation not supported for VTPM (instance uuid %(instance_uuid)s, operation %(operation)s)."


class PciConfigInvalidSpec(Invalid):
    msg_fmt = "Pci config invalid spec: %(reason)s"


class PciDeviceDetachFailed(NovaException):
    msg_fmt = "Pci device detach failed (dev %(dev)s): %(reason)s"


class PciDeviceInvalidDeviceName(NovaException):
    msg_fmt = "Pci device invalid device name."


class PciDeviceInvalidOwner(Invalid):
    msg_fmt = (
        "Pci device invalid owner (address %(address)s, compute node id %(compute_node_id)s, hopeowner "
        "%(hopeowner)s, owner %(owner)s)."
    )


class PciDeviceInvalidPFRemoteManaged(NovaException):
    msg_fmt = "Pci device invalid PF remote managed (address %(address)s)."


class PciDeviceInvalidStatus(Invalid):
    msg_fmt = (
        "Pci device invalid status (address %(address)s, compute node id %(compute_node_id)s, "
        "hopestatus %(hopestatus)s, status %(status)s)."
    )


class PciDeviceNotFound(NotFound):
    msg_fmt = "Pci device not found (address %(address)s, node id %(node_id)s)."


class PciDeviceNotFoundById(NotFound):
    msg_fmt = "Pci device not found by id (id %(id)s)."


class PciDevicePFInvalidStatus(Invalid):
    msg_fmt = (
        "Pci device PF invalid status (address %(address)s, compute node id %(compute_node_id)s, "
        "hopestatus %(hopestatus)s, status %(status)s, vf address %(vf_address)s)."
    )


class PciDevicePoolEmpty(NovaException):
    msg_fmt = "Pci device pool empty (address %(address)s, compute node id %(compute_node_id)s)."


class PciDeviceRemoteManagedNotPresent(NovaException):
    msg_fmt = "Pci device remote managed not present."


class PciDeviceRequestFailed(NovaException):
    msg_fmt = "Pci device request failed (requests %(requests)s)."


class PciDeviceUnsupportedHypervisor(NovaException):
    msg_fmt = "Pci device unsupported hypervisor (type %(type)s)."


class PciDeviceVFInvalidStatus(Invalid):
    msg_fmt = "Pci device VF invalid status (address %(address)s, compute node id %(compute_node_id)s)."


class PciDeviceWrongAddressFormat(NovaException):
    msg_fmt = "Pci device wrong address format (address %(address)s)."


class PciInvalidAlias(Invalid):
    msg_fmt = "Pci invalid alias: %(reason)s"


class PciRequestAliasNotDefined(NovaException):
    msg_fmt = "Pci request alias not defined (alias %(alias)s)."


class PciRequestFromVIFNotFound(NotFound):
    msg_fmt = "Pci request from VIF not found (node id %(node_id)s, pci slot %(pci_slot)s)."


class RealtimeConfigurationInvalid(Invalid):
    msg_fmt = "Realtime configuration invalid."


class RealtimeMaskNotFoundOrInvalid(Invalid):
    msg_fmt = "Realtime mask not found or invalid."


class RequestedVRamTooHigh(NovaException):
    msg_fmt = "Requested v ram too high (max vram %(max_vram)s, req vram %(req_vram)s)."


class RequiredMixedInstancePolicy(Invalid):
    msg_fmt = "Required mixed instance policy."


class RequiredMixedOrRealtimeCPUMask(Invalid):
    msg_fmt = "Required mixed or realtime CPU mask."


class RngDeviceNotExist(Invalid):
    msg_fmt = "Rng device not exist (path %(path)s)."


class UnsupportedHardware(Invalid):
    msg_fmt = "Unsupported hardware (model %(model)s, virt %(virt)s)."


class UnsupportedHostCPUControlPolicy(Invalid):
    msg_fmt = "Unsupported host CPU control policy."


class UnsupportedMachineType(Invalid):
    msg_fmt = "Unsupported machine type (machine type %(machine_type)s)."


class UnsupportedPolicyException(Invalid):
    msg_fmt = "Unsupported policy: %(reason)s"


class UnsupportedRPCVersion(Invalid):
    msg_fmt = "Version %(required)s or newer of the %(api)s interface is required."


class UnsupportedRescueBus(Invalid):
    msg_fmt = "Unsupported rescue bus (bus %(bus)s, virt %(virt)s)."


class UnsupportedRescueDevice(Invalid):
    msg_fmt = "Unsupported rescue device (device %(device)s)."


class UnsupportedVirtType(Invalid):
    msg_fmt = "Unsupported virt type (virt %(virt)s)."


class VPMEMCleanupFailed(NovaException):
    msg_fmt = "VPMEM cleanup failed (dev %(dev)s): %(error)s"


class VTPMOldCompute(Invalid):
    msg_fmt = "VTPM old compute."


class VTPMSecretForbidden(Forbidden):
    msg_fmt = "VTPM secret forbidden."


class VTPMSecretNotFound(NovaException):
    msg_fmt = "VTPM secret not found (instance uuid %(instance_uuid)s)."


class VirtDriverNotReady(NovaException):
    msg_fmt = "Virt driver not ready."
