"""What is plugged into a host is unplugged, also when the cloud's record has forgotten it."""

import json

import pytest
from tests.fakes import guests

from kilonova.compute.events import ExternalEvents
from kilonova.compute.lanes import Preempted
from kilonova.contract import context, exceptions
from kilonova.virt.driver import BlockDevices, Services, Volume
from kilonova.virt.libvirt import driver, network, storage
from kilonova.virt.libvirt.plugged import Plugged

MINE, OTHER = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
VIF = {"id": "port", "type": "ovs", "network": {"id": "n", "meta": {"mtu": 1400}}, "details": {"secret": [1]}}
VOLUME = Volume("vol", "a", {"driver_volume_type": "iscsi", "data": {"auth_password": "x"}}, "/dev/vdb", None)


class Host:
    """A driver without a hypervisor; `plugs` notes what is unplugged, `broken` what cannot be."""

    def __init__(self, conf, connection, tmp_path, monkeypatch):
        self.unplugged, self.broken, self.defined = [], set(), {}
        monkeypatch.setattr(driver, "Connection", lambda *_: connection)
        connection.get().listAllDomains = list
        self.driver = driver.LibvirtDriver(conf, "h", tmp_path, Services(None, ExternalEvents(cancelled=Preempted)))
        monkeypatch.setattr(network, "unplug", lambda vifs, owner: self.take(vifs[0]["id"]))
        monkeypatch.setattr(self.driver._volumes, "disconnect", lambda each, force=True: self.take_volume(each))
        monkeypatch.setattr(driver.power, "off", lambda *args: None)
        monkeypatch.setattr(driver.Guest, "undefine", lambda *args, **more: None)
        monkeypatch.setattr(storage.Storage, "delete", lambda *args: None)
        monkeypatch.setattr(self.driver, "guests", lambda: self.defined)
        self.folder = tmp_path / "plugged"

    def take(self, ident):
        if ident in self.broken:
            return [f"{ident} is busy"]
        self.unplugged.append(ident)
        return []

    def take_volume(self, volume):
        if self.take(volume.volume_id):
            raise OSError("busy")

    def note(self, uuid=MINE):
        self.driver._plugged.note(self.driver._owner(guests.instance(uuid=uuid)), [VIF], [VOLUME])

    def destroy(self, vifs=(), volumes=()):
        made = guests.instance(uuid=MINE)
        self.driver.destroy(context.admin(), made, vifs, BlockDevices(volumes=volumes))


def test_a_full_disk_keeps_no_guest(host, monkeypatch):
    """The note keeps what it need not: that is unplugged once more."""
    host.note()
    host.broken = {"vol"}

    def full(_self, _note):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Plugged, "_write", full)
        host.destroy()
    assert host.driver.leftovers() == {MINE}
    host.broken = set()
    host.driver.unplug(MINE)
    assert host.unplugged == ["port", "port", "vol"]
    assert host.driver.leftovers() == set()


@pytest.fixture
def host(conf, connection, tmp_path, monkeypatch):
    return Host(conf, connection, tmp_path, monkeypatch)


def test_what_the_record_forgot_is_unplugged(host):
    host.note()
    host.destroy()
    assert host.unplugged == ["port", "vol"]
    assert list(host.folder.iterdir()) == []


def test_what_the_record_names_is_unplugged_once_noted_or_not(host):
    host.note()
    host.destroy([VIF, {**VIF, "id": "older"}], [VOLUME])
    assert sorted(host.unplugged) == ["older", "port", "vol"]


def test_what_stays_is_remembered_and_tried_again(host):
    host.note()
    host.broken = {"port", "vol"}
    host.destroy()
    assert set(host.driver.leftovers()) == {MINE}
    host.broken = {"vol"}
    with pytest.raises(exceptions.NovaException, match="vol"):
        host.driver.unplug(MINE)
    host.broken = set()
    host.driver.unplug(MINE)
    assert host.unplugged == ["port", "vol"]
    assert set(host.driver.leftovers()) == set()
    host.driver.unplug(MINE)


def test_another_run_of_the_agent_knows_it(host):
    host.note()
    found = Plugged(host.folder).of(MINE)
    assert found.vifs == {"port": VIF}
    assert found.volumes == {"vol": VOLUME}
    assert found.owner.uuid == MINE


def test_only_the_owner_reads_it(host):
    host.note()
    [file] = host.folder.iterdir()
    assert (host.folder.stat().st_mode & 0o077, file.stat().st_mode & 0o077) == (0, 0)
    assert json.loads(file.read_text())["volumes"]["vol"]["connection_info"]["data"] == {"auth_password": "x"}


def test_what_another_guest_has_by_now_stays_plugged(host):
    host.note()
    host.note(OTHER)
    host.destroy()
    assert host.unplugged == []
    assert host.driver._plugged.guests() == {OTHER}


@pytest.mark.parametrize("ident", ["port", "vol"])
def test_two_guests_that_go_at_once_do_not_leave_it_to_each_other(host, ident):
    """Each asks before the other has ended."""
    host.note()
    host.note(OTHER)
    notes = host.driver._plugged
    assert [notes.left_to_another(guest, ident) for guest in (MINE, OTHER)] == [True, False]


def test_a_guest_that_is_here_is_no_leftover(host):
    host.note()
    host.defined = {MINE: None}
    assert set(host.driver.leftovers()) == set()


def test_it_is_noted_before_it_is_plugged(host, monkeypatch):
    seen = []

    def plug(*args):
        seen.append(host.driver._plugged.of(MINE))
        raise OSError("the host fails here")

    monkeypatch.setattr(host.driver._sharing._volumes, "connect", plug)
    made = guests.spec(
        instance=guests.instance(uuid=MINE), network_info=[VIF], block_devices=BlockDevices(volumes=[VOLUME])
    )
    with pytest.raises(OSError, match="fails here"):
        host.driver._create(made, None, first=True)
    assert (set(seen[0].vifs), set(seen[0].volumes)) == ({"port"}, {"vol"})
