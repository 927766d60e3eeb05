"""Errors of resource providers, inventories and allocations."""

from kilonova.contract.exceptions.base import Invalid, NotFound, NovaException


class AllocationCreateFailed(NovaException):
    msg_fmt = "Allocation create failed (instance %(instance)s, provider %(provider)s)."


class AllocationDeleteFailed(NovaException):
    msg_fmt = "Allocation delete failed (consumer uuid %(consumer_uuid)s): %(error)s"


class AllocationMoveFailed(NovaException):
    msg_fmt = (
        "Allocation move failed (source consumer %(source_consumer)s, target consumer %(target_consumer)s): %(error)s"
    )


class AllocationUpdateFailed(NovaException):
    msg_fmt = "Allocation update failed (consumer uuid %(consumer_uuid)s): %(error)s"


class AmbiguousHostnameForMultipleInstances(Invalid):
    msg_fmt = "Ambiguous hostname for multiple instances."


class AmbiguousResourceProviderForPCIRequest(NovaException):
    msg_fmt = "Ambiguous resource provider for PCI request (providers %(providers)s, requester %(requester)s)."


class AssignedResourceNotFound(NovaException):
    msg_fmt = "Assigned resource not found: %(reason)s"


class ConsumerAllocationRetrievalFailed(NovaException):
    msg_fmt = "Consumer allocation retrieval failed (consumer uuid %(consumer_uuid)s): %(error)s"


class HealAllocationException(NovaException):
    msg_fmt = "Heal allocation."


class HealDeviceProfileAllocationNotSupported(HealAllocationException):
    msg_fmt = "Heal device profile allocation not supported (instance uuid %(instance_uuid)s)."


class HealvGPUAllocationNotSupported(HealAllocationException):
    msg_fmt = "Healv GPU allocation not supported (instance uuid %(instance_uuid)s)."


class InvalidInventory(Invalid):
    msg_fmt = "Invalid inventory (resource class %(resource_class)s, resource provider %(resource_provider)s)."


class InvalidResourceClass(Invalid):
    msg_fmt = "Invalid resource class (resource class %(resource_class)s)."


class InventoryInUse(InvalidInventory):
    msg_fmt = "Inventory in use (resource class %(resource_class)s, resource provider %(resource_provider)s)."


class PlacementAPIConflict(NovaException):
    msg_fmt = "Placement API conflict (url %(url)s): %(error)s"


class PlacementAPIConnectFailure(NovaException):
    msg_fmt = "Placement API connect failure."


class PlacementPciException(NovaException):
    msg_fmt = "Placement pci: %(error)s"


class PlacementPciDependentDeviceException(PlacementPciException):
    msg_fmt = "Placement pci dependent device (children devs %(children_devs)s, parent dev %(parent_dev)s)."


class PlacementPciMixedResourceClassException(PlacementPciException):
    msg_fmt = (
        "Placement pci mixed resource class (current devs %(current_devs)s, current rc %(current_rc)s, "
        "new dev %(new_dev)s, new rc %(new_rc)s)."
    )


class PlacementPciMixedTraitsException(PlacementPciException):
    msg_fmt = (
        "Placement pci mixed traits (current devs %(current_devs)s, current traits %(current_traits)s, "
        "new dev %(new_dev)s, new traits %(new_traits)s)."
    )


class PlacementReshapeConflict(PlacementAPIConflict):
    msg_fmt = "Placement reshape conflict: %(error)s"


class ProviderConfigException(NovaException):
    msg_fmt = "Provider config: %(error)s"


class RequestGroupSuffixConflict(NovaException):
    msg_fmt = "Request group suffix conflict (suffix %(suffix)s)."


class ReshapeFailed(NovaException):
    msg_fmt = "Reshape failed: %(error)s"


class ReshapeNeeded(NovaException):
    msg_fmt = "Reshape needed."


class ResourceProviderAggregateRetrievalFailed(NovaException):
    msg_fmt = "Resource provider aggregate retrieval failed (uuid %(uuid)s)."


class ResourceProviderAllocationRetrievalFailed(NovaException):
    msg_fmt = "Resource provider allocation retrieval failed (rp uuid %(rp_uuid)s): %(error)s"


class ResourceProviderCreationFailed(NovaException):
    msg_fmt = "Resource provider creation failed (name %(name)s)."


class ResourceProviderDeletionFailed(NovaException):
    msg_fmt = "Resource provider deletion failed (uuid %(uuid)s)."


class ResourceProviderInUse(NovaException):
    msg_fmt = "Resource provider in use."


class ResourceProviderNotFound(NotFound):
    msg_fmt = "Resource provider not found (name or uuid %(name_or_uuid)s)."


class ResourceProviderRetrievalFailed(NovaException):
    msg_fmt = "Resource provider retrieval failed (uuid %(uuid)s)."


class ResourceProviderSyncFailed(NovaException):
    msg_fmt = "Resource provider sync failed."


class ResourceProviderTraitRetrievalFailed(NovaException):
    msg_fmt = "Resource provider trait retrieval failed (uuid %(uuid)s)."


class ResourceProviderUpdateConflict(PlacementAPIConflict):
    msg_fmt = "Resource provider update conflict (generation %(generation)s, uuid %(uuid)s): %(error)s"


class ResourceProviderUpdateFailed(NovaException):
    msg_fmt = "Resource provider update failed (url %(url)s): %(error)s"


class TraitCreationFailed(NovaException):
    msg_fmt = "Trait creation failed (name %(name)s): %(error)s"


class TraitRetrievalFailed(NovaException):
    msg_fmt = "Trait retrieval failed: %(error)s"


class UnexpectedResourceProviderNameForPCIRequest(NovaException):
    msg_fmt = (
        "Unexpected resource provider name for PCI request (provider %(provider)s, provider name "
        "%(provider_name)s, requester %(requester)s)."
    )


class UsagesRetrievalFailed(NovaException):
    msg_fmt = "Usages retrieval failed (project id %(project_id)s, user id %(user_id)s)."
