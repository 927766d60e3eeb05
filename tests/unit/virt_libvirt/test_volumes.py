"""Volumes leave guests, and hosts disconnect those that no other guest has."""

import dataclasses
import threading
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import libvirt
import pytest
from os_brick import exception as brick_exceptions
from os_brick.initiator import connector
from oslo_concurrency import processutils
from tests.fakes import guests

from kilonova.compute.events import ExternalEvents
from kilonova.compute.lanes import Preempted
from kilonova.compute.ops.build import failure as failed_builds
from kilonova.contract import exceptions
from kilonova.virt.driver import BlockDevices, Services, Volume
from kilonova.virt.libvirt import detach, driver, sharing, volumes

MINE, OTHER = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
VOLUME = "33333333-3333-4333-8333-333333333333"


def disk(serial, target="vdb", device="disk"):
    number = f"<serial>{serial}</serial>" if device != "lun" else ""
    return (
        f"<disk type='block' device='{device}'><source dev='/dev/x'/><target dev='{target}' bus='scsi'/>{number}</disk>"
    )


def domain(*disks):
    return f"<domain><devices>{''.join(disks)}</devices></domain>"


class Domain:
    """A domain with disks; each of `keeps` requests to the running guest is not obeyed."""

    def __init__(self, uuid, *disks, running=False, keeps=0, persistent=True):
        self.uuid = uuid
        self.keeps = keeps
        self.persistent = persistent
        self.live = domain(*disks) if running else None
        self.defined = domain(*disks)
        self.asked = []
        self.answers = []

    def UUIDString(self):
        return self.uuid

    def ID(self):
        return 1 if self.live else -1

    def state(self):
        return [libvirt.VIR_DOMAIN_RUNNING if self.live else libvirt.VIR_DOMAIN_SHUTOFF]

    def isPersistent(self):
        return self.persistent

    def XMLDesc(self, flags=0):
        return self.defined if flags & libvirt.VIR_DOMAIN_XML_INACTIVE or not self.live else self.live

    def detachDeviceFlags(self, xml, flags):
        running = bool(flags & libvirt.VIR_DOMAIN_AFFECT_LIVE)
        self.asked.append((ET.fromstring(xml).find("target").get("dev"), running))
        if running:
            if self.answers:
                raise self.answers.pop(0)
            if self.keeps:
                self.keeps -= 1
                return
        name = "live" if running else "defined"
        setattr(self, name, domain(*_others(getattr(self, name), xml)))


def _others(whole, gone):
    target = ET.fromstring(gone).find("target").get("dev")
    disks = ET.fromstring(whole).iterfind("devices/disk")
    return [ET.tostring(each, encoding="unicode") for each in disks if each.find("target").get("dev") != target]


class Fails(libvirt.libvirtError):
    def __init__(self, code, words=""):
        super().__init__(words)
        self.code, self.words = code, words

    def get_error_code(self):
        return self.code

    def get_error_message(self):
        return self.words

    def get_error_domain(self):
        return libvirt.VIR_FROM_QEMU


@pytest.fixture
def host(conf, connection, tmp_path, monkeypatch):
    """A driver whose libvirt has the domains that a test puts there; `disconnected` volumes by id and force."""
    monkeypatch.setattr(driver, "Connection", lambda *_: connection)
    monkeypatch.setattr(detach, "_LOOK", 0.01)
    conf.set_override("device_detach_timeout", 1, "libvirt")
    conf.set_override("device_detach_attempts", 2, "libvirt")
    made = driver.LibvirtDriver(conf, "host", tmp_path, Services(None, ExternalEvents(cancelled=Preempted)))
    domains, disconnected = {}, []

    def lookup(uuid):
        if uuid not in domains:
            raise Fails(libvirt.VIR_ERR_NO_DOMAIN)
        return domains[uuid]

    connection.get().lookupByUUIDString = lookup
    connection.get().listAllDomains = lambda: list(domains.values())
    monkeypatch.setattr(
        made._volumes, "disconnect", lambda each, force=True: disconnected.append((each.volume_id, force))
    )

    def put(*args, **more):
        found = Domain(*args, **more)
        domains[found.uuid] = found
        return found

    return SimpleNamespace(driver=made, put=put, domains=domains, disconnected=disconnected)


def volume(mount="/dev/vdb", **info):
    return Volume(VOLUME, None, {"driver_volume_type": "iscsi", "data": {}, **info}, mount, None)


def leave(host, which=None):
    host.driver.detach_volume(guests.instance(uuid=MINE), which or volume())


def test_a_stopped_guest_loses_the_disk(host):
    guest = host.put(MINE, disk("root", "vda"), disk(VOLUME))
    leave(host)
    assert guest.asked == [("vdb", False)]
    assert detach.disk_of(ET.fromstring(guest.defined), volume()) is None
    # What was not written yet must not be lost: not by force.
    assert host.disconnected == [(VOLUME, False)]


def test_a_running_guest_is_asked_first(host):
    guest = host.put(MINE, disk(VOLUME), running=True)
    leave(host)
    assert guest.asked == [("vdb", True), ("vdb", False)]


def test_a_running_guest_is_asked_again(host):
    guest = host.put(MINE, disk(VOLUME), running=True, keeps=1)
    leave(host)
    assert [running for _, running in guest.asked] == [True, True, False]


def test_a_guest_that_keeps_it_keeps_everything(host):
    guest = host.put(MINE, disk(VOLUME), running=True, keeps=9)
    with pytest.raises(exceptions.DeviceDetachFailed, match="asked 2 times"):
        leave(host)
    assert detach.disk_of(ET.fromstring(guest.defined), volume()) is not None
    assert host.disconnected == []


@pytest.mark.parametrize(
    "answer",
    [
        Fails(
            libvirt.VIR_ERR_INTERNAL_ERROR, "unable to execute QEMU command: Device is already in the process of unplug"
        ),
        Fails(libvirt.VIR_ERR_OPERATION_FAILED, "disk vdb not found"),
        Fails(libvirt.VIR_ERR_DEVICE_MISSING),
    ],
)
def test_a_disk_that_is_leaving_is_waited_for(host, answer):
    guest = host.put(MINE, disk(VOLUME), running=True)
    guest.answers.append(answer)
    leave(host)
    assert host.disconnected == [(VOLUME, False)]


def test_what_libvirt_refuses_is_not_hidden(host):
    guest = host.put(MINE, disk(VOLUME), running=True)
    guest.answers.append(Fails(libvirt.VIR_ERR_OPERATION_UNSUPPORTED, "cannot unplug\n'/var/lib/nova/x'"))
    with pytest.raises(exceptions.InternalError, match=r"cannot unplug '\(a file of the host\)'"):
        leave(host)
    assert host.disconnected == []


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (brick_exceptions.TargetPortalNotFound(target_portal="portal"), "Unable to find target portal portal."),
        (processutils.ProcessExecutionError(stderr="cannot open /etc/iscsi/x: denied\n"), "the host): denied"),
        (brick_exceptions.VolumeDeviceNotFound(device="/dev/sdx"), f"location {VOLUME}"),
    ],
)
def test_what_a_connector_says_is_told(conf, monkeypatch, failure, told):
    """A volume whose device does not appear here is not gone: another host may see it."""

    def connect(*_):
        raise failure

    made = SimpleNamespace(connect_volume=connect)
    monkeypatch.setattr(connector.InitiatorConnector, "factory", lambda *_, **__: made)
    with pytest.raises(exceptions.NovaException) as caught:
        volumes.Volumes(conf, "host").connect(volume())
    assert told in caught.value.format_message()
    assert "/etc" not in caught.value.format_message()
    assert failed_builds.judge(MINE, caught.value).again


@pytest.mark.parametrize("known", [True, False])
def test_nothing_to_take(host, known):
    guest = host.put(MINE, disk("another")) if known else None
    leave(host)
    assert guest is None or guest.asked == []
    assert host.disconnected == [(VOLUME, False)]


def test_a_lun_goes_by_its_name_and_no_other_disk_does(host):
    guest = host.put(MINE, disk("another", "vdb"), disk(None, "sda", "lun"))
    leave(host, volume("/dev/sda"))
    assert guest.asked == [("sda", False)]


def test_a_guest_without_a_definition(host):
    guest = host.put(MINE, disk(VOLUME), running=True, persistent=False)
    leave(host)
    assert guest.asked == [("vdb", True)]


@pytest.mark.parametrize("device", ["disk", "lun"])
def test_a_volume_that_another_guest_has_stays_connected(host, device):
    host.put(MINE, disk(VOLUME))
    host.put(OTHER, disk(VOLUME, device=device))
    leave(host, volume(multiattach=True))
    assert host.disconnected == []
    del host.domains[OTHER]
    leave(host, volume(multiattach=True))
    assert host.disconnected == [(VOLUME, False)]


def test_a_guest_that_goes_does_not_disconnect_it_either(host, monkeypatch):
    monkeypatch.setattr(driver.power, "off", lambda *_: None)
    monkeypatch.setattr(driver.Guest, "undefine", lambda *_, **__: None)
    host.put(OTHER, disk(VOLUME))
    volumes = BlockDevices(volumes=[volume(multiattach=True)])
    host.driver.destroy(None, guests.instance(uuid=MINE), [], volumes)
    assert host.disconnected == []
    del host.domains[OTHER]
    host.driver.destroy(None, guests.instance(uuid=MINE), [], volumes)
    assert host.disconnected == [(VOLUME, True)]


def test_a_guest_that_is_just_being_made_has_its_volumes(connection):
    connection.get().listAllDomains = list
    connected, disconnected = [], []
    volumes = SimpleNamespace(connect=connected.append, disconnect=lambda *args: disconnected.append(args))
    shared = sharing.Sharing(connection, volumes)
    begins, ends = threading.Event(), threading.Event()

    def make():
        with shared.connected(OTHER, [volume(multiattach=True)]):
            begins.set()
            ends.wait(10)

    thread = threading.Thread(target=make)
    thread.start()
    assert begins.wait(10)
    shared.disconnect(MINE, volume(multiattach=True))
    assert (len(connected), disconnected) == (1, [])
    ends.set()
    thread.join(10)
    # It was not made after all.
    shared.disconnect(MINE, volume(multiattach=True))
    assert len(disconnected) == 1


def test_a_volume_that_takes_its_time_to_go_keeps_no_other_one_waiting(connection):
    connection.get().listAllDomains = list
    another, ends, begins = "44444444-4444-4444-8444-444444444444", threading.Event(), threading.Event()
    slow, quick = volume(multiattach=True), dataclasses.replace(volume(multiattach=True), volume_id=another)
    done = []

    def disconnect(each, force):
        if each.volume_id == VOLUME:
            begins.set()
            ends.wait(10)
        done.append(each.volume_id)

    shared = sharing.Sharing(connection, SimpleNamespace(connect=lambda each: each.volume_id, disconnect=disconnect))
    going = threading.Thread(target=shared.disconnect, args=(MINE, slow))
    going.start()
    assert begins.wait(10)
    shared.disconnect(MINE, quick)
    with shared.connected(OTHER, [quick]) as sources:
        assert list(sources) == [another]
    assert done == [another]

    def make():
        with shared.connected(OTHER, [slow]):
            done.append("connected")

    coming = threading.Thread(target=make)
    coming.start()
    coming.join(0.1)
    assert coming.is_alive()
    ends.set()
    for thread in (going, coming):
        thread.join(10)
    assert done == [another, VOLUME, "connected"]


def test_of_two_guests_that_go_at_once_one_disconnects_it(host, monkeypatch):
    """Both domains are there until both have asked who else has the volume."""
    monkeypatch.setattr(driver.power, "off", lambda *_: None)
    both = threading.Barrier(2)
    monkeypatch.setattr(driver.Guest, "undefine", lambda *_, **__: both.wait(10))
    volumes = BlockDevices(volumes=[volume(multiattach=True)])
    for guest in (MINE, OTHER):
        host.put(guest, disk(VOLUME))
    threads = [
        threading.Thread(target=host.driver.destroy, args=(None, guests.instance(uuid=guest), [], volumes))
        for guest in (MINE, OTHER)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert host.disconnected == [(VOLUME, True)]
