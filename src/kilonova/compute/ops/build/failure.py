"""When a build fails: what is undone, who tries next, and what the user is told.

Nothing that was made for the server stays on this host or is held for it: guest, ports, attachments, claim and
allocations. Then either another host is asked for (through the conductor), or the server goes to ERROR with a fault.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import logging
import time
import traceback
from collections.abc import Callable, Iterator

from kilonova.base import log, retry
from kilonova.clients.http import ServiceError
from kilonova.compute import block_devices, network, releases
from kilonova.compute.lanes import Preempted
from kilonova.compute.ops.build.job import GONE, OVERTAKEN, RESCHEDULED, Build
from kilonova.compute.runner import Explained
from kilonova.compute.store import message_of
from kilonova.contract import exceptions
from kilonova.contract.states import VM, Task
from kilonova.wire.rpc.errors import RPC_LOST

LOG = logging.getLogger(__name__)

BUS_DOWN = retry.Backoff(attempts=8, base=0.5, cap=30.0)
NETWORKS, VOLUMES = "networks", "volumes"
DESTROY_TRIES, DESTROY_PAUSE = 3, 1.0
HANDING_BACK = "rescheduling"
"""The journal's step from which on the build is given back."""

DELETED = (exceptions.InstanceNotFound, exceptions.UnexpectedDeletingTaskStateError, Preempted)
"""The server is not wanted any more."""

HOPELESS: tuple[type[Exception], ...] = (
    exceptions.FlavorDiskTooSmall,
    exceptions.FlavorMemoryTooSmall,
    exceptions.ImageNotActive,
    exceptions.ImageUnacceptable,
    exceptions.InvalidDiskInfo,
    exceptions.InvalidDiskFormat,
    exceptions.CertificateValidationFailed,
    exceptions.VolumeEncryptionNotSupported,
    exceptions.InvalidInput,
    exceptions.RequestedVRamTooHigh,
    exceptions.Base64Exception,
    # What other services said of what was asked for.
    exceptions.Forbidden,
    exceptions.Unauthorized,
    exceptions.OverQuota,
    exceptions.ImageBadRequest,
    exceptions.ImageNotAuthorized,
    exceptions.ImageNotFound,
    exceptions.FixedIpAlreadyInUse,
    exceptions.NetworkAmbiguous,
    exceptions.NetworkNotFound,
    exceptions.NoUniqueMatch,
    exceptions.PortInUse,
    exceptions.PortNotFound,
    exceptions.PortNotUsable,
    exceptions.PortNotUsableDNS,
    exceptions.SecurityGroupCannotBeApplied,
    exceptions.SecurityGroupNotFound,
    exceptions.InvalidVolume,
    exceptions.SnapshotNotFound,
    exceptions.VolumeAttachmentNotFound,
    exceptions.VolumeNotFound,
)
"""The same everywhere: another host would fail alike."""

NO_NETWORK: tuple[type[Exception], ...] = (
    exceptions.ExternalNetworkAttachForbidden,
    exceptions.NoMoreFixedIps,
    exceptions.VirtualInterfaceCreateException,
    exceptions.VirtualInterfaceMacAddressException,
    exceptions.FixedIpInvalidOnHost,
    exceptions.UnableToAutoAllocateNetwork,
    exceptions.NetworksWithQoSPolicyNotSupported,
)
"""About networks, and not worth another host."""

BAD_VOLUME: tuple[type[Exception], ...] = (
    exceptions.InstanceUnacceptable,
    exceptions.ExternalNetworkAttachForbidden,
    exceptions.OverQuota,
    exceptions.InvalidBDM,
    exceptions.VolumeNotCreated,
)
"""About volumes, with a message fit for the user."""


class InPhase(Exception):
    """A failure with the phase it happened in; `__cause__` is the failure."""

    def __init__(self, phase: str, cause: Exception) -> None:
        super().__init__(phase, cause)
        self.phase, self.cause = phase, cause


@contextlib.contextmanager
def phase(name: str) -> Iterator[None]:
    """Failures of the body are judged as this phase's."""
    try:
        yield
    except DELETED:
        raise
    except Exception as exc:
        raise InPhase(name, exc) from exc


@dataclasses.dataclass(frozen=True)
class Verdict:
    """`again`: another host may succeed. `reason` is for the user, `error` is what the fault records."""

    again: bool
    reason: str
    error: Exception
    counts: bool = True
    """Whether it says something about this host; a server group's rule does not."""


def judge(instance_uuid: str, error: Exception) -> Verdict:
    """Pure: what a failure means."""
    where, cause = (error.phase, error.cause) if isinstance(error, InPhase) else (None, error)
    if isinstance(cause, exceptions.BuildAbortException):
        return Verdict(False, cause.format_message(), cause)
    if isinstance(cause, exceptions.GroupAffinityViolation):
        return Verdict(True, message_of(cause), cause, counts=False)
    if isinstance(cause, exceptions.ComputeResourcesUnavailable):
        return Verdict(True, message_of(cause), cause)
    reason = _hopeless(where, cause)
    if reason is None:
        return Verdict(True, message_of(cause), cause)
    abort = exceptions.BuildAbortException(instance_uuid=instance_uuid, reason=reason)
    abort.__cause__ = cause
    return Verdict(False, abort.format_message(), abort)


def _hopeless(where: str | None, cause: Exception) -> str | None:
    """The reason when no host would do better."""
    if isinstance(cause, ServiceError) and cause.refuses:
        return cause.for_users
    if isinstance(cause, NO_NETWORK):
        return f"Failed to allocate the network(s) with error {message_of(cause)}, not rescheduling."
    if where == VOLUMES:
        fit = isinstance(cause, (*BAD_VOLUME, *HOPELESS))
        return message_of(cause) if fit else f"Failure prepping block device: {message_of(cause)}"
    return message_of(cause) if isinstance(cause, HOPELESS) else None


def end(build: Build, error: Exception) -> str:
    """End a failed build; returns how. Raises Explained when the server is in ERROR now."""
    cause = error.cause if isinstance(error, InPhase) else error
    if isinstance(cause, DELETED):
        return gone(build, cause)
    if isinstance(cause, exceptions.UnexpectedTaskStateError):
        return overtaken(build, cause)
    verdict = judge(build.instance.uuid, error)
    LOG.warning("build of instance %s failed: %s", build.instance.uuid, verdict.reason, exc_info=log.trace(cause))
    agent = build.work.agent
    if verdict.counts:
        agent.tracker.build_ended(build.instance.node, failed=True)
    try:
        if verdict.again and build.filter_properties.get("retry"):
            return reschedule(build, verdict)
        return give_up(build, verdict)
    except DELETED as exc:
        return gone(build, exc)
    except exceptions.UnexpectedTaskStateError as exc:
        return overtaken(build, exc)


def overtaken(build: Build, error: Exception) -> str:
    """Somebody else decided what becomes of the server: only what this host made is taken away."""
    LOG.warning("instance %s was taken over during its build: %s", build.instance.uuid, error)
    clean(build)
    build.work.agent.tracker.forget(build.instance.uuid)
    return OVERTAKEN


def gone(build: Build, error: Exception) -> str:
    """The server was deleted meanwhile. Its delete takes what the record names; this takes what it may not."""
    LOG.info("instance %s disappeared during its build (%s)", build.instance.uuid, type(error).__name__)
    if not _guest_stays(clean(build)):
        release_allocations(build)
    return GONE


def reschedule(build: Build, verdict: Verdict) -> str:
    """Undo, and ask the conductor for another host."""
    build.work.agent.journal.step(build.work.entry, HANDING_BACK)
    if errors := clean(build, keep_volumes=True):
        # What could not be undone here would be in the way there.
        return give_up(build, dataclasses.replace(verdict, again=False), errors)
    unplace(build)
    build.save(Task.SCHEDULING)
    return hand_back(build, verdict.reason, traceback.format_exception(verdict.error))


def hand_back(build: Build, reason: str, trace: list[str]) -> str:
    """Ask the conductor for another host, once the record and this host know nothing of the build any more."""
    agent, ctxt = build.work.agent, build.work.ctxt
    release_allocations(build)
    properties = build.filter_properties
    properties["retry"] = {**(properties.get("retry") or {}), "exc": trace, "exc_reason": reason}
    args = build.work.args
    hand = functools.partial(
        agent.conductor.build_instances,
        ctxt,
        instances=[build.instance],
        image=args.get("image"),
        filter_properties=properties,
        admin_password=args.get("admin_password"),
        injected_files=args.get("injected_files"),
        requested_networks=args.get("requested_networks"),
        security_groups=args.get("security_groups"),
        block_device_mapping=args.get("block_device_mapping"),
        legacy_bdm=False,
        request_spec=args.get("request_spec"),
        host_lists=[args.get("host_list")],
    )
    retry.call(hand, on=RPC_LOST, backoff=BUS_DOWN)
    return RESCHEDULED


def give_up(build: Build, verdict: Verdict, errors: list[Exception] | None = None) -> str:
    """Undo, put the server into ERROR and say why. Raises Explained."""
    agent, ctxt, instance = build.work.agent, build.work.ctxt, build.instance
    if errors is None:
        errors = clean(build)
    stays = _guest_stays(errors)
    if not stays:
        unplace(build)
    # The reason is there as soon as the state is.
    agent.store.fault(ctxt, instance.uuid, agent.host, verdict.error, message=verdict.reason)
    instance.vm_state = VM.ERROR
    build.save(None)
    if not stays:
        release_allocations(build)
    raise Explained(verdict.reason) from verdict.error


def unplace(build: Build) -> None:
    """The server is on no host now."""
    instance = build.instance
    build.work.agent.tracker.forget(instance.uuid)
    instance.host = instance.node = instance.compute_id = instance.launched_on = None
    instance.availability_zone = None


def release_allocations(build: Build) -> None:
    """What the scheduler claimed for the server on this host is free again."""
    agent = build.work.agent
    agent.tracker.forget(build.instance.uuid)

    def release() -> None:
        agent.clients.placement.allocations_delete(build.work.ctxt, build.instance.uuid, force=True)

    _attempt("allocations", build, release)


class GuestStays(Exception):
    """The guest could not be destroyed: its record names this host, and it keeps its ports and volumes."""


def _guest_stays(errors: list[Exception]) -> bool:
    return any(isinstance(each, GuestStays) for each in errors)


def clean(build: Build, keep_volumes: bool = False) -> list[Exception]:
    """Remove guest, ports and attachments; returns what could not be. `keep_volumes`: only make them free to move."""
    if build.spawning and not _destroyed(build):
        return [GuestStays()]
    agent, ctxt, instance = build.work.agent, build.work.ctxt.elevated(), build.instance
    volumes = [m for m in build.mappings if block_devices.is_volume(m) and m.volume_id]

    def ports() -> None:
        agent.clients.neutron.deallocate(
            ctxt, instance, requested=build.arg("requested_networks"), cached=build.network_info
        )
        network.remember(instance, [])
        if "network_allocated" in instance.system_metadata:
            # The next host would look for ports that are gone, if it is one of Nova's.
            instance.system_metadata = {**instance.system_metadata, "network_allocated": "False"}
        if build.network_info:
            agent.store.interfaces_forget(ctxt, instance.uuid)

    def attachments() -> None:
        if keep_volumes:
            renewing = agent.background.submit(
                lambda: block_devices.renew_all(agent, build.work.ctxt, instance, volumes)
            )
            agent.events.await_result(instance.uuid, renewing)
        elif failures := releases.release_all(agent, build.work.ctxt, build.mappings, unknown=build.attaching):
            raise failures[0]

    steps: list[tuple[str, Callable[[], object]]] = [("ports", ports)]
    if volumes or build.attaching:
        steps.append(("volumes", attachments))
    errors = [_attempt(name, build, call) for name, call in steps]
    return [each for each in errors if each is not None]


def _destroyed(build: Build) -> bool:
    """Whether the guest is gone. What makes it stay may pass: it is tried some times."""
    agent, ctxt, instance = build.work.agent, build.work.ctxt.elevated(), build.instance

    def destroy() -> None:
        agent.driver.destroy(ctxt, instance, build.network_info, build.disks)

    for attempt in range(DESTROY_TRIES):
        if _attempt("guest", build, destroy) is None:
            return True
        if attempt + 1 < DESTROY_TRIES:
            time.sleep(DESTROY_PAUSE)
    return False


def _attempt(what: str, build: Build, call: Callable[[], object]) -> Exception | None:
    """Try one part of the undoing, as the others must be tried too. Leaks are found by repair loops."""
    try:
        call()
    except Exception as exc:
        LOG.exception("%s of the failed build of instance %s could not be released", what, build.instance.uuid)
        return exc
    return None
