"""A cloud that the peer filled is taken over by us, and taken back.

Keystone, Placement, Neutron, Glance, Cinder, MariaDB and RabbitMQ are real, guests are those of the fake drivers. The
tests are one story and run in their order: what the peer shows is what we show, what it refuses we refuse, what can be
done can be done with what it left, and then the peer goes on with what we left. Needs PEER_PYTHON (a Python with the
peer in it).
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.interop.documents import Allowed
from tests.interop.takeover import COUNTED_EVERY, STATES, Filling, Handover, World, handover
from tests.interop.takeover_questions import ADMIN, OWNER, Answers, ask_all, differences, questions
from tests.needs import needs

from kilonova.cloud.library import surroundings
from kilonova.cloud.rest import poll

PEER = os.environ.get("PEER_PYTHON")
pytestmark = [
    pytest.mark.interop,
    pytest.mark.timeout(3600),
    needs("peer"),
    needs("rabbitmq", "mariadb"),
]
PORT_OFFSET = 22000

REFUSALS: dict[str, tuple[Any, set[str]]] = {
    "os-start": (None, {"SHUTOFF"}),
    "os-stop": (None, {"ACTIVE", "ERROR"}),
    "reboot": ({"type": "SOFT"}, {"ACTIVE"}),
    "reboot ": ({"type": "HARD"}, {"ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED", "ERROR"}),
    "os-getConsoleOutput": (
        {"length": 1},
        {"ACTIVE", "ERROR", "SHUTOFF", "VERIFY_RESIZE", "PAUSED", "SUSPENDED", "RESCUE", "SOFT_DELETED"},
    ),
    "os-resetState": ({"state": "active"}, set()),
}
"""Actions that a server's owner is refused, except in these states. The second name of an action ends in a blank."""
METADATA_IN = {"ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED"}


@dataclasses.dataclass
class Story:
    """What the peer said of its cloud before we took it over."""

    cloud: Handover
    world: World
    shown: Answers
    refused: dict[tuple[str, str], int]
    held: dict[str, Any]


@pytest.fixture(scope="module")
def story() -> Iterator[Story]:
    with (
        tempfile.TemporaryDirectory(prefix="kn-over-", ignore_cleanup_errors=True) as root,
        surroundings(Path(root) / "s", profile="full", volumes=True, port_offset=PORT_OFFSET) as lab,
        handover(lab, Path(str(PEER)).parents[1]) as cloud,
    ):
        cloud.to("theirs")
        world = Filling(cloud).fill()
        refused = refusals(cloud, world)
        yield Story(cloud, world, ask_all(cloud, questions(cloud, world)), refused, cloud.holdings())


@pytest.fixture
def ours(story: Story) -> Handover:
    story.cloud.to("ours")
    return story.cloud


@pytest.fixture
def theirs(story: Story) -> Handover:
    story.cloud.to("theirs")
    return story.cloud


def refusals(cloud: Handover, world: World) -> dict[tuple[str, str], int]:
    """Status of each request that a server's state, its lock or its owner forbids."""
    found = {}
    for name, server in world.servers.items():
        status = cloud.show(server)["status"] if name != "ended" else "DELETED"
        for action, (value, states) in REFUSALS.items():
            if status not in states or name in ("nowhere", "aborted"):
                path = f"/servers/{server}/action"
                found[name, action] = cloud.ask(OWNER, "POST", path, {action.strip(): value})[0]
        if status not in METADATA_IN:
            path, body = f"/servers/{server}/metadata", {"metadata": {"x": "y"}}
            found[name, "metadata"] = cloud.ask(OWNER, "POST", path, body)[0]
    for name in ("private", "twins-2"):
        for action, (value, _) in REFUSALS.items():
            if action.strip() in ("os-stop", "reboot"):
                path = f"/servers/{world.servers[name]}/action"
                found[f"locked {name}", action] = cloud.ask(OWNER, "POST", path, {action.strip(): value})[0]
        found[f"locked {name}", "delete"] = cloud.ask(OWNER, "DELETE", f"/servers/{world.servers[name]}")[0]
    return found


ALLOWED = (
    Allowed("os-services|os-availability-zone", r".*\.updated_at", "services go on reporting"),
    Allowed("os-hypervisors", r".*\.uptime", "the peer's fake hosts have none; ours are up since their start"),
    Allowed("os-simple-tenant-usage", r".*\.uptime", "servers go on running"),
    Allowed(r"project_id=|os-simple-tenant-usage/", r".*\.href", "the peer puts a project id from the URL into links"),
    Allowed("os-simple-tenant-usage", r".*_links.*\.href", "the order of parameters in a link"),
    Allowed(
        "deleted=true|status=DELETED|changes-since=2",
        r".*\.host_status",
        "the peer shows all servers of a host what it found for the first, and a deleted one has none",
    ),
    Allowed("description=", ".*", "the peer takes this filter from an administrator and finds everything"),
)


def test_everything_is_shown_as_the_peer_shows_it(story: Story, ours: Handover) -> None:
    assert_same(story.shown, ask_all(ours, list(story.shown)), CLEANED)


CLEANED = (
    Allowed("deleted=true|changes-since", r".*\.updated", "of deleted servers: both sides note when no files are left"),
)


def assert_same(before: Answers, after: Answers, allowed: tuple[Allowed, ...] = ()) -> None:
    found = differences(before, after, (*ALLOWED, *allowed))
    listed = "\n".join(str(one) for one in found[:50])
    assert not found, f"{len(found)} differences among {len(before)} answers:\n{listed}"


def test_what_the_peer_refuses_is_refused(story: Story, ours: Handover) -> None:
    refused = refusals(ours, story.world)
    assert set(story.refused.values()) <= {403, 404, 409}
    assert {k: (v, refused[k]) for k, v in story.refused.items() if refused[k] != v} == {}


def test_what_other_services_hold_is_left_alone(story: Story, ours: Handover) -> None:
    """Our repair loops have looked at it several times by now."""
    assert ours.holdings() == story.held
    for name, (status, _, _) in STATES.items():
        assert ours.show(story.world.servers[name])["status"] == status


@pytest.mark.parametrize("name", ["stopped", "active", "from volume", "twins-1", "by admin"])
def test_a_server_of_the_peer_lives_on(story: Story, ours: Handover, name: str) -> None:
    server = story.world.servers[name]
    before = ours.holdings()
    if name == "stopped":
        ours.act(server, "os-start")
        ours.until(server, "ACTIVE")
    for kind in ("SOFT", "HARD"):
        ours.act(server, "reboot", {"type": kind})
        ours.until(server, "ACTIVE", lambda shown: shown["OS-EXT-STS:power_state"] == 1)
    ours.act(server, "os-stop")
    ours.until(server, "SHUTOFF", lambda shown: shown["OS-EXT-STS:power_state"] == 4)
    if name != "stopped":
        ours.act(server, "os-start")
        ours.until(server, "ACTIVE", lambda shown: shown["OS-EXT-STS:power_state"] == 1)
        assert ours.act(server, "os-getConsoleOutput", {"length": 5})["output"]
    assert ours.holdings() == before
    done = [one["action"] for one in ours.get(f"/servers/{server}/os-instance-actions")["instanceActions"]]
    assert done[:2] == (["stop", "reboot"] if name == "stopped" else ["start", "stop"])


def test_servers_in_other_states_get_well(story: Story, ours: Handover) -> None:
    """By a hard reboot, and by an administrator's word."""
    names = story.world.servers
    for name in ("paused", "resetted"):
        ours.act(names[name], "reboot", {"type": "HARD"})
        ours.until(names[name], "ACTIVE", lambda shown: shown["OS-EXT-STS:power_state"] == 1)
    ours.act(names["by admin"], "os-resetState", {"state": "error"}, ADMIN)
    ours.until(names["by admin"], "ERROR")
    ours.act(names["by admin"], "os-resetState", {"state": "active"}, ADMIN)
    ours.until(names["by admin"], "ACTIVE")


def test_locks_of_the_peer_hold_and_open(story: Story, ours: Handover) -> None:
    names = story.world.servers
    assert ours.show(names["private"])["locked_reason"] == "ours"
    for user, name in ((OWNER, "private"), (ADMIN, "twins-2")):
        ours.act(names[name], "unlock", None, user)
        ours.act(names[name], "os-stop")
        ours.until(names[name], "SHUTOFF")
        ours.act(names[name], "lock", {"locked_reason": "again"}, user)
        assert ours.show(names[name])["locked"] is True


def test_what_belongs_to_a_server_changes(story: Story, ours: Handover) -> None:
    base = f"/servers/{story.world.servers['active']}"
    for method, path, body, code in (
        ("POST", "/metadata", {"metadata": {"c": "3"}}, 200),
        ("PUT", "/metadata/a", {"meta": {"a": "9"}}, 200),
        ("DELETE", "/metadata/b", None, 204),
        ("PUT", "/tags/green", None, 201),
        ("DELETE", "/tags/red", None, 204),
        ("PUT", "", {"server": {"name": "other name", "description": None, "accessIPv6": "2001:db8::1"}}, 200),
    ):
        assert ours.ask(OWNER, method, f"{base}{path}", body, "2.94")[0] == code, (method, path)
    shown = ours.get(base)["server"]
    assert (shown["metadata"], shown["tags"]) == ({"a": "9", "c": "3"}, ["blue", "green"])
    assert (shown["name"], shown["description"], shown["accessIPv6"]) == ("other name", None, "2001:db8::1")


def test_nouns_of_the_peer_change(story: Story, ours: Handover) -> None:
    world, project = story.world, ours.demo.project_id
    racks, _, none = world.aggregates
    for method, path, body, user, code in (
        ("PUT", "/flavors/specs/os-extra_specs/quota:cpu_shares", {"quota:cpu_shares": "7"}, ADMIN, 200),
        ("DELETE", "/flavors/specs/os-extra_specs/hw_rng:allowed", None, ADMIN, 200),
        ("PUT", "/flavors/specs", {"flavor": {"description": "changed"}}, ADMIN, 200),
        ("POST", "/flavors/ours/action", {"addTenantAccess": {"tenant": ours.admin.project_id}}, ADMIN, 200),
        ("DELETE", "/flavors/huge", None, ADMIN, 202),
        ("POST", f"/os-aggregates/{racks}/action", {"set_metadata": {"metadata": {"n": None, "m": "2"}}}, ADMIN, 200),
        ("POST", f"/os-aggregates/{none}/action", {"add_host": {"host": "second"}}, ADMIN, 200),
        ("PUT", f"/os-aggregates/{none}", {"aggregate": {"name": "some"}}, ADMIN, 200),
        ("PUT", f"/os-quota-sets/{project}", {"quota_set": {"cores": 97}}, ADMIN, 200),
        ("DELETE", f"/os-quota-sets/{project}?user_id={world.user}", None, ADMIN, 202),
        ("PUT", "/os-quota-class-sets/default", {"quota_class_set": {"instances": 81}}, ADMIN, 200),
        ("DELETE", "/os-keypairs/other", None, OWNER, 204),
        ("DELETE", f"/os-server-groups/{world.groups['empty']}", None, OWNER, 204),
    ):
        assert ours.ask(user, method, path, body)[0] == code, (method, path)
    assert ours.get(f"/os-quota-sets/{project}")["quota_set"]["cores"] == 97


def test_new_servers_stand_beside_those_of_the_peer(story: Story, ours: Handover) -> None:
    """They keep the rules of its groups, see its zones, and use its keypairs."""
    filling = Filling(ours)
    filling.world = story.world
    new = filling.create("new", key_name="key", availability_zone="zone-1", tags=["red"], flavorRef="ours")
    apart = filling.create("apart", hints={"group": story.world.groups["apart"]})
    assert ours.until(new, "ACTIVE")["OS-EXT-SRV-ATTR:host"] == "first"
    ours.until(apart, "ACTIVE")
    members = ours.get(f"/os-server-groups/{story.world.groups['apart']}", user=OWNER)["server_group"]["members"]
    assert {apart, story.world.servers["twins-1"], story.world.servers["twins-2"]} == set(members)


DELETED = ("nowhere", "aborted", "resized too", "shelved too", "from volume too", "trashed too", "rescued", "admins")


@pytest.mark.parametrize("name", DELETED)
def test_a_server_of_the_peer_is_deleted_without_a_trace(story: Story, ours: Handover, name: str) -> None:
    server = story.world.servers[name]
    assert not name.startswith("shelved") or ours.images(f"{name}-shelved")
    user = "admin@demo" if name == "aborted" else ADMIN if name == "admins" else OWNER
    if name == "trashed too":
        ours.act(server, "forceDelete")
    else:
        assert ours.ask(user, "DELETE", f"/servers/{server}")[0] == 204
    poll(f"{name} is not gone", lambda: ours.gone(server), 120)
    poll(f"{name} left something", lambda: not traces(ours, server), 60)
    left = ours.get("/servers/detail?all_tenants=1&deleted=true")["servers"]
    assert server in [one["id"] for one in left]
    if name.startswith("shelved"):
        poll("its snapshot stays", lambda: not ours.images(f"{name}-shelved"), 60)


def traces(cloud: Handover, *servers: str) -> list[Any]:
    """What other services hold for servers, or for migrations of theirs that are no more."""
    held = cloud.holdings()
    ports = [port for port in held["ports"].values() if port["device_id"] in servers]
    attached = [one for one in held["attachments"].values() if one[0] in servers]
    known = cloud.consumers()
    claims = [consumer for held in held["claims"].values() for consumer in held if consumer not in known]
    return [*ports, *attached, *claims]


def test_the_peer_takes_it_back(story: Story, ours: Handover) -> None:
    """Its fake hosts have forgotten their guests, which is known: that is the one thing that it shows otherwise."""
    asked = questions(ours, story.world)
    time.sleep(1.5 * COUNTED_EVERY)
    before = ask_all(ours, asked)
    held = ours.holdings()
    ours.to("theirs")
    assert_same(before, ask_all(ours, asked), FORGOTTEN)
    assert ours.holdings() == held


FORGOTTEN = (
    Allowed("", r".*\.(OS-EXT-STS:power_state|updated)", "noted at the restart of a fake host of the peer"),
    Allowed("power_state=", ".*", "and found by it"),
    Allowed("/os-flavor-access", r"flavor_access\[\d+\]\.tenant_id", "in the database's order, which is not defined"),
)


def test_the_verbs_of_the_peer_work_on_what_we_left(story: Story, theirs: Handover) -> None:
    names = story.world.servers
    for name in ("private", "twins-2"):
        theirs.act(names[name], "unlock", None, ADMIN)
    for name in ("active", "from volume", "twins-1", "private", "twins-2", "new", "apart", "by admin", "stopped"):
        theirs.act(names[name], "reboot", {"type": "HARD"})
    for name, action, status in (
        ("shelved", "unshelve", "ACTIVE"),
        ("trashed", "restore", "ACTIVE"),
        ("suspended", "resume", "ACTIVE"),
    ):
        theirs.act(names[name], action)
        theirs.until(names[name], status)
    for name in ("active", "from volume", "twins-1", "private", "twins-2", "new", "apart", "by admin", "stopped"):
        theirs.until(names[name], "ACTIVE")
    theirs.act(names["new"], "os-stop")
    theirs.until(names["new"], "SHUTOFF")
    theirs.act(names["resized"], "confirmResize")
    theirs.until(names["resized"], "ACTIVE")
    volume = f"/servers/{names['active']}/os-volume_attachments/{story.world.volume}"
    assert theirs.ask(OWNER, "DELETE", volume)[0] == 202
    poll("the volume stays attached", lambda: theirs.ask(OWNER, "GET", volume)[0] == 404, 120)


def test_the_peer_deletes_everything(story: Story, theirs: Handover) -> None:
    """And nothing of it is left anywhere."""
    listed = [one["id"] for one in theirs.get("/servers?all_tenants=1")["servers"]]
    for server in listed:
        theirs.act(server, "forceDelete", None, ADMIN)
    for server in listed:
        poll(f"{server} is not gone", lambda one=server: theirs.gone(one), 120)
    held = theirs.holdings()
    assert {host: claims for host, claims in held["claims"].items() if claims} == {}
    assert [port for port in held["ports"].values() if port["device_owner"].startswith("compute")] == []
    assert held["attachments"] == {}
