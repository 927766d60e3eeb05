"""Errors of flavors, key pairs, aggregates and server groups."""

from kilonova.contract.exceptions.base import Invalid, NotFound, NovaException


class AggregateHostExists(NovaException):
    msg_fmt = "Aggregate host exists (aggregate id %(aggregate_id)s, host %(host)s)."


class AggregateHostNotFound(NotFound):
    msg_fmt = "Aggregate host not found (aggregate id %(aggregate_id)s, host %(host)s)."


class AggregateMetadataKeyExists(NovaException):
    msg_fmt = "Aggregate metadata key exists (aggregate id %(aggregate_id)s, key %(key)s)."
    code = 400


class AggregateMetadataNotFound(NotFound):
    msg_fmt = "Aggregate metadata not found (aggregate id %(aggregate_id)s, metadata key %(metadata_key)s)."


class AggregateNameExists(NovaException):
    msg_fmt = "Aggregate name exists (aggregate name %(aggregate_name)s)."


class AggregateNotFound(NotFound):
    msg_fmt = "Aggregate %(aggregate_id)s could not be found."


class CannotMigrateToSameHost(NovaException):
    msg_fmt = "Cannot migrate to same host."


class CannotResizeToSameFlavor(NovaException):
    msg_fmt = "Cannot resize to same flavor."


class FlavorAccessExists(NovaException):
    msg_fmt = "Flavor access exists (flavor id %(flavor_id)s, project id %(project_id)s)."


class FlavorAccessNotFound(NotFound):
    msg_fmt = "Flavor access not found (flavor id %(flavor_id)s, project id %(project_id)s)."


class FlavorExists(NovaException):
    msg_fmt = "Flavor exists (name %(name)s)."


class FlavorExtraSpecUpdateCreateFailed(NovaException):
    msg_fmt = "Flavor extra spec update create failed (id %(id)s, retries %(retries)s)."


class FlavorExtraSpecsNotFound(NotFound):
    msg_fmt = "Flavor extra specs not found (extra specs key %(extra_specs_key)s, flavor id %(flavor_id)s)."


class FlavorIdExists(NovaException):
    msg_fmt = "Flavor id exists (flavor id %(flavor_id)s)."


class FlavorMemoryTooSmall(NovaException):
    msg_fmt = "The flavor's memory is too small for the image."


class FlavorNotFound(NotFound):
    msg_fmt = "Flavor %(flavor_id)s could not be found."


class FlavorNotFoundByName(FlavorNotFound):
    msg_fmt = "Flavor not found by name (flavor name %(flavor_name)s)."


class GroupAffinityViolation(NovaException):
    msg_fmt = "Group affinity violation (policy %(policy)s)."


class InstanceGroupIdExists(NovaException):
    msg_fmt = "Instance group id exists (group uuid %(group_uuid)s)."


class InstanceGroupNotFound(NotFound):
    msg_fmt = "Instance group %(group_uuid)s could not be found."


class InstanceGroupSaveException(NovaException):
    msg_fmt = "Instance group save (field %(field)s)."


class InvalidAggregateAction(Invalid):
    msg_fmt = "Invalid aggregate action."


class InvalidAggregateActionAdd(InvalidAggregateAction):
    msg_fmt = "Invalid aggregate action add (aggregate id %(aggregate_id)s): %(reason)s"


class InvalidAggregateActionDelete(InvalidAggregateAction):
    msg_fmt = "Invalid aggregate action delete (aggregate id %(aggregate_id)s): %(reason)s"


class InvalidAggregateActionUpdate(InvalidAggregateAction):
    msg_fmt = "Invalid aggregate action update (aggregate id %(aggregate_id)s): %(reason)s"


class InvalidAggregateActionUpdateMeta(InvalidAggregateAction):
    msg_fmt = "Invalid aggregate action update meta (aggregate id %(aggregate_id)s): %(reason)s"


class InvalidKeypair(Invalid):
    msg_fmt = "Invalid keypair: %(reason)s"


class KeyPairExists(NovaException):
    msg_fmt = "Key pair '%(key_name)s' already exists."


class KeypairNotFound(NotFound):
    msg_fmt = "Keypair %(name)s not found for user %(user_id)s"
