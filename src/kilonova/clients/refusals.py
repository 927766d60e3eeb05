"""What another service's refusal becomes here: one table, by service and by what the call is about.

An exception of the contract says how it ends: the API has a code for each (api/errors.py, api/ops/build.py), hosts know
which of them no other host would do better with. A refusal that is not in the table stays a ServiceError. Each keeps
the service's own words: in its message where it has room for a reason, and as its cause.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from kilonova.clients.http import ServiceError
from kilonova.contract import exceptions

Becomes: TypeAlias = Callable[[ServiceError, Mapping[str, Any]], Exception]


def reason(kind: type[exceptions.NovaException], **fixed: Any) -> Becomes:
    """An exception with a place for the reason."""
    return lambda error, ids: kind(reason=_said(error), **fixed)


def words(kind: type[exceptions.NovaException]) -> Becomes:
    """An exception whose message the service's words are."""
    return lambda error, ids: kind(_said(error))


def named(kind: type[exceptions.NovaException], **more: Callable[[ServiceError], Any]) -> Becomes:
    """An exception that names what was asked for; `more`: what else of the error it tells."""
    return lambda error, ids: kind(**ids, **{name: of(error) for name, of in more.items()})


def explained(kind: type[exceptions.NovaException]) -> Becomes:
    """An exception that names what was asked for and has no place for a reason, which follows its message."""
    return lambda error, ids: kind(f"{kind(**ids).format_message()} {error.said or ''}".rstrip())


def _said(error: ServiceError) -> str:
    return error.said or f"The service {error.service} answered with HTTP {error.status}."


_CINDER: Final[Mapping[int | str, Becomes]] = {
    400: reason(exceptions.InvalidInput),
    401: words(exceptions.Forbidden),
    403: words(exceptions.Forbidden),
    406: lambda error, ids: exceptions.CinderAPIVersionNotAvailable(version=_said(error)),
    409: reason(exceptions.InvalidVolume),
    413: words(exceptions.OverQuota),
}

_GLANCE: Final[Mapping[int | str, Becomes]] = {
    400: named(exceptions.ImageBadRequest, response=_said),
    401: explained(exceptions.ImageNotAuthorized),
    403: explained(exceptions.ImageNotAuthorized),
    404: named(exceptions.ImageNotFound),
    413: explained(exceptions.ImageQuotaExceeded),
}

_NEUTRON: Final[Mapping[int | str, Becomes]] = {
    # Clients fetch another token on seeing this, as with Nova.
    401: lambda error, ids: exceptions.Unauthorized(
        f"Not authorised: the service neutron does not accept this token. It says: {_said(error)}"
    ),
    403: words(exceptions.Forbidden),
}

TABLE: Final[Mapping[tuple[str, str], Mapping[int | str, Becomes]]] = {
    ("cinder", ""): _CINDER,
    ("cinder", "volume"): {404: named(exceptions.VolumeNotFound)},
    ("cinder", "new volume"): {404: words(exceptions.NotFound)},
    ("cinder", "attachment"): {404: named(exceptions.VolumeAttachmentNotFound)},
    ("cinder", "snapshot"): {404: named(exceptions.SnapshotNotFound)},
    ("glance", ""): _GLANCE,
    ("glance", "image deletion"): {409: reason(exceptions.ImageDeleteConflict)},
    ("neutron", ""): _NEUTRON,
    ("neutron", "new port"): {
        "OverQuota": lambda error, ids: exceptions.PortLimitExceeded(),
        "IpAddressGenerationFailure": lambda error, ids: exceptions.NoMoreFixedIps(net=ids["network_id"]),
        **dict.fromkeys(
            ("InvalidIpForNetwork", "InvalidIpForSubnet"),
            lambda error, ids: exceptions.InvalidInput(
                reason=f"Fixed IP {ids['address']} is not a valid ip address for network {ids['network_id']}."
            ),
        ),
        **dict.fromkeys(
            ("IpAddressInUse", "IpAddressAlreadyAllocated"),
            lambda error, ids: exceptions.FixedIpAlreadyInUse(f"Fixed IP {ids['address']} is already in use."),
        ),
    },
    ("neutron", "port"): {
        "MacAddressInUse": named(exceptions.PortInUse),
        "HostNotCompatibleWithFixedIps": named(exceptions.FixedIpInvalidOnHost),
        "FixedIpsSubnetsNotOnSameSegment": named(exceptions.FixedIpInvalidOnHost),
        404: named(exceptions.PortNotFound),
    },
    ("neutron", "port name"): {
        400: lambda error, ids: exceptions.InvalidInput(
            reason=f"Instance hostname {ids['hostname']} is not a valid DNS name: {_said(error)}"
        ),
    },
}
"""(service, what the call is about) -> the service's own name of the error, or the status -> what it becomes.

What a call is about comes first, what holds for the whole service ("") second.
"""

_CODES: Final[Mapping[int, int]] = {403: 403, 409: 409, 412: 409, 413: 403}


def code_of(error: ServiceError) -> int | None:
    """What the API answers to the service's refusal of a user's wish; None for any other error."""
    return _CODES.get(error.status or 0, 400) if error.words else None


def of(error: ServiceError, about: str = "", **ids: Any) -> Exception:
    """What to raise for a refusal; `ids` name what the call was about, as the exception's message does."""
    for table in (TABLE.get((error.service, about), {}), TABLE.get((error.service, ""), {})):
        for key in (error.kind, error.status):
            becomes = table.get(key) if key is not None else None
            if becomes is not None:
                made = becomes(error, ids)
                made.__cause__ = error
                return made
    return error
