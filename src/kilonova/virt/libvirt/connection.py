"""The connection to libvirtd: opened lazily, checked, reopened when libvirtd was restarted."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from xml.etree import ElementTree as ET

import libvirt
from oslo_log import log

from kilonova.base.outward import without_paths
from kilonova.contract import exceptions
from kilonova.virt.libvirt.config.element import parse

LOG = log.getLogger(__name__)

_KEEPALIVE = (5, 5)
"""Seconds between probes of a remote libvirtd, and how many may go unanswered."""

_FIRST_WAIT, _LONGEST_WAIT = 0.5, 10.0
"""Seconds between attempts to reach a libvirtd that went away."""

_LONGEST_WORDS = 400

_loop_lock = threading.Lock()
_loop: threading.Thread | None = None


def start_event_loop() -> None:
    """libvirt has one event loop in a process, and it must exist before the first connection is opened."""
    global _loop
    with _loop_lock:
        if _loop is not None:
            return
        libvirt.registerErrorHandler(lambda _context, error: LOG.debug("libvirt: %s", error), None)
        libvirt.virEventRegisterDefaultImpl()
        _loop = threading.Thread(target=_turn, name="libvirt-events", daemon=True)
        _loop.start()


def _turn() -> None:
    # A timer that does nothing keeps the loop turning, else a new handle would wait for some other event.
    libvirt.virEventAddTimeout(1000, lambda _timer, _opaque: None, None)
    while True:
        libvirt.virEventRunDefaultImpl()


class Connection:
    """One libvirtd. `on_open` is called with each new connection, to register for its events.

    A connection that breaks is opened again when it is next used; `keep` does so at once, so that no event is missed
    for longer than libvirtd itself is away.
    """

    def __init__(self, uri: str, host: str, on_open: Callable[[libvirt.virConnect], None] | None = None) -> None:
        self.uri = uri
        self._host = host
        self._on_open = on_open
        self._lock = threading.Lock()
        self._broken = threading.Event()
        self._keeper: threading.Thread | None = None
        self._closing = False
        self._connection: libvirt.virConnect | None = None
        self._domain_capabilities: dict[tuple[str, str | None, str], ET.Element] = {}

    def get(self) -> libvirt.virConnect:
        """A connection that answered just now. Raises HypervisorUnavailable."""
        with self._lock:
            if self._connection is None or not _answers(self._connection):
                self._connection = self._open()
            return self._connection

    def keep(self) -> None:
        """Connect, and from now on whenever the connection breaks. Raises HypervisorUnavailable."""
        self._closing = False
        self.get()
        self._keeper = threading.Thread(target=self._reconnect, name="libvirt-keeper", daemon=True)
        self._keeper.start()

    def _reconnect(self) -> None:
        while self._broken.wait() and not self._closing:
            self._broken.clear()
            wait = _FIRST_WAIT
            while not self._closing and not self._opened():
                time.sleep(wait)
                wait = min(2 * wait, _LONGEST_WAIT)

    def _opened(self) -> bool:
        try:
            self.get()
        except exceptions.HypervisorUnavailable:
            return False
        return True

    def close(self) -> None:
        self._closing = True
        self._broken.set()
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except libvirt.libvirtError as failure:
                LOG.debug("Closing the connection to %s: %s", self.uri, failure)

    def _open(self) -> libvirt.virConnect:
        start_event_loop()
        try:
            connection = libvirt.open(self.uri)
            connection.setKeepAlive(*_KEEPALIVE)
            connection.registerCloseCallback(lambda *_: self._broken.set(), None)
        except libvirt.libvirtError as failure:
            LOG.error("libvirt at %s cannot be reached: %s", self.uri, failure)
            raise exceptions.HypervisorUnavailable(host=self._host) from failure
        LOG.info("Connected to libvirt at %s", self.uri)
        if self._on_open is not None:
            self._on_open(connection)
        return connection

    @contextmanager
    def domain(self, uuid: str) -> Iterator[libvirt.virDomain]:
        """The guest's domain. Raises InstanceNotFound, also when it vanishes meanwhile."""
        with self.errors(uuid):
            yield self.get().lookupByUUIDString(uuid)

    @contextmanager
    def errors(self, uuid: str) -> Iterator[None]:
        """Turn libvirt's errors about a guest into ours, with its words where ours have none."""
        try:
            yield
        except libvirt.libvirtError as failure:
            code = failure.get_error_code()
            if code == libvirt.VIR_ERR_NO_DOMAIN:
                raise exceptions.InstanceNotFound(instance_id=uuid) from failure
            if _is_broken(failure):
                raise exceptions.HypervisorUnavailable(host=self._host) from failure
            LOG.warning("Guest %s: libvirt failed: %s", uuid, failure)
            raise exceptions.InternalError(err=_words(failure)) from failure

    @functools.cached_property
    def capabilities(self) -> ET.Element:
        """What the host is, as libvirt saw it first."""
        return parse(self.get().getCapabilities())

    @functools.cached_property
    def host_features(self) -> frozenset[str]:
        """Every flag of the host's processor, those its model implies included."""
        described = self.capabilities.find("host/cpu")
        return self.cpu_features(described) if described is not None else frozenset()

    def cpu_features(self, cpu: ET.Element) -> frozenset[str]:
        """All flags of a described processor (its own where libvirt cannot say which its model implies)."""
        flags = libvirt.VIR_CONNECT_BASELINE_CPU_EXPAND_FEATURES
        try:
            expanded = parse(self.get().baselineCPU([ET.tostring(cpu, encoding="unicode")], flags))
        except libvirt.libvirtError as failure:
            LOG.info("libvirt does not say which flags %s has: %s", cpu.findtext("model"), failure)
            expanded = cpu
        found = expanded.iterfind("feature")
        return frozenset(each.get("name", "") for each in found if each.get("policy") != "disable")

    def domain_capabilities(self, arch: str, machine: str | None, virt_type: str) -> ET.Element:
        """What the hypervisor can do for a machine type. Raises Invalid where it has none such."""
        key = (arch, machine, virt_type)
        if key not in self._domain_capabilities:
            try:
                answer = self.get().getDomainCapabilities(None, arch, machine, virt_type, 0)
            except libvirt.libvirtError as failure:
                kind = f"{virt_type} guests of {arch} {machine or ''}".rstrip()
                raise exceptions.Invalid(f"The hypervisor has no {kind}: {without_paths(str(failure))}") from failure
            self._domain_capabilities[key] = parse(answer)
        return self._domain_capabilities[key]

    @functools.cached_property
    def versions(self) -> tuple[int, int]:
        """(libvirt, hypervisor) as libvirt's numbers: major * 1000000 + minor * 1000 + release."""
        connection = self.get()
        return connection.getLibVersion(), connection.getVersion()

    @property
    def hostname(self) -> str:
        return str(self.get().getHostname())


def _is_broken(failure: libvirt.libvirtError) -> bool:
    return failure.get_error_code() in (
        libvirt.VIR_ERR_SYSTEM_ERROR,
        libvirt.VIR_ERR_INTERNAL_ERROR,
    ) and failure.get_error_domain() in (libvirt.VIR_FROM_REMOTE, libvirt.VIR_FROM_RPC)


def _answers(connection: libvirt.virConnect) -> bool:
    try:
        connection.getLibVersion()
    except libvirt.libvirtError as failure:
        LOG.warning("The connection to libvirt is gone: %s", failure)
        return False
    return True


def _words(failure: libvirt.libvirtError) -> str:
    """What libvirt says, in one line, of which the beginning tells most."""
    said = " ".join(str(failure.get_error_message() or failure).split())
    return f"The hypervisor failed: {without_paths(said)[:_LONGEST_WORDS]}"
