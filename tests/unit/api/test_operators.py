"""Services, availability zones, quotas and limits, external events, instance actions through the whole API."""

from __future__ import annotations

import time
from typing import Any

import falcon.testing
import pytest
import sqlalchemy as sa
from tests.unit.api import seeds

from kilonova.base import clock, ids
from kilonova.contract.context import RequestContext
from kilonova.db.api import aggregates, host_mappings
from kilonova.db.cell import compute_nodes
from kilonova.db.cell.tables import INSTANCES, MIGRATIONS, SERVICES
from kilonova.db.objects import action as action_rows

ADMIN = {"user": "admin"}
NODE = "11111111-1111-4111-8111-111111111111"


def admin(world: Any, method: str, path: str, body: Any = None, version: str = "2.96") -> Any:
    return world.request(method, path, body, version=version, user="admin")


def node(world: Any, host: str = "h1", uuid: str = NODE, cell: str = "c1", **more: Any) -> Any:
    numbers = ("vcpus", "memory_mb", "local_gb", "vcpus_used", "memory_mb_used", "local_gb_used", "hypervisor_version")
    row = {"uuid": uuid, "host": host, "hypervisor_hostname": host, "hypervisor_type": "fake", "cpu_info": ""}
    with world.cell(cell).database.write() as tx:
        return compute_nodes.compute_node_create(tx, row | dict.fromkeys(numbers, 0) | more)


def zone(world: Any, name: str, *hosts: str) -> int:
    with world.cells.api.write() as tx:
        made = aggregates.aggregate_create(tx, name, {"availability_zone": name})
        for host in hosts:
            aggregates.aggregate_host_add(tx, made["id"], host)
    number: int = made["id"]
    return number


def statements(world: Any, path: str, **more: Any) -> tuple[Any, int]:
    """The answer to a GET, and how many SQL statements it took."""
    count = 0

    def counted(*_: Any) -> None:
        nonlocal count
        count += 1

    engine = sa.event.listen
    engine(sa.engine.Engine, "before_cursor_execute", counted)
    try:
        answer = world.get(path, **more)
    finally:
        sa.event.remove(sa.engine.Engine, "before_cursor_execute", counted)
    return answer, count


def break_cell(world: Any, name: str) -> None:
    """From now on the cell's database does not answer."""
    database = world.cell(name).database
    with database.write() as tx:
        for table in (SERVICES, INSTANCES):
            tx.execute(sa.text(f"ALTER TABLE {table.name} RENAME TO gone_{table.name}"))


# ---------------------------------------------------------------- services


def test_services_of_all_cells(world: Any) -> None:
    first = seeds.service(world)
    seeds.service(world, "h2", cell="c2", disabled=True, disabled_reason="broken", forced_down=True)
    seeds.service(world, "control", "nova-conductor", last_seen_up=seeds.NOW)
    seeds.service(world, "control", "nova-osapi_compute")
    zone(world, "z", "h1")
    listed = admin(world, "GET", "/os-services").json["services"]
    shown = {(s["host"], s["binary"]): (s["zone"], s["status"], s["state"], s["disabled_reason"]) for s in listed}
    assert shown == {
        ("h1", "nova-compute"): ("z", "enabled", "up", None),
        ("h2", "nova-compute"): ("nova", "disabled", "down", "broken"),
        ("control", "nova-conductor"): ("internal", "enabled", "down", None),
    }
    assert {s["id"] for s in listed if s["host"] == "h1"} == {first["uuid"]}
    old = admin(world, "GET", "/os-services?host=h1", version="2.10").json["services"]
    assert [(s["id"], "forced_down" in s) for s in old] == [(first["id"], False)]
    assert admin(world, "GET", "/os-services?binary=nova-none").json == {"services": []}
    assert world.get("/os-services").status_code == 403


def test_a_service_is_taken_out_of_use_and_back(world: Any, host: Any) -> None:
    path = f"/os-services/{seeds.service(world)['uuid']}"
    off = admin(world, "PUT", path, {"status": "disabled", "disabled_reason": "repair"}).json["service"]
    assert (off["status"], off["disabled_reason"], off["state"]) == ("disabled", "repair", "up")
    assert host.wait("set_host_enabled")["enabled"] is False
    on = admin(world, "PUT", path, {"status": "enabled"}).json["service"]
    assert (on["status"], on["disabled_reason"]) == ("enabled", None)
    assert host.wait("set_host_enabled", 2)["enabled"] is True
    down = admin(world, "PUT", path, {"forced_down": True}).json["service"]
    assert (down["state"], down["forced_down"]) == ("down", True)


def test_a_service_is_taken_out_of_use_although_its_host_cannot_tell_placement(world: Any, host: Any) -> None:
    class Broken(dict[str, Any]):
        def get(self, *_: Any) -> Any:
            raise RuntimeError("Placement is away")

    host.answers = Broken()
    path = f"/os-services/{seeds.service(world)['uuid']}"
    assert admin(world, "PUT", path, {"status": "disabled"}).json["service"]["status"] == "disabled"
    assert admin(world, "GET", "/os-services").json["services"][0]["status"] == "disabled"


@pytest.mark.parametrize(
    "body", [{}, {"disabled_reason": "x"}, {"status": "enabled", "disabled_reason": "x"}, {"status": "off"}, {"x": 1}]
)
def test_an_update_of_a_service_that_is_none(world: Any, body: Any) -> None:
    made = seeds.service(world)
    assert admin(world, "PUT", f"/os-services/{made['uuid']}", body).status_code == 400
    assert admin(world, "GET", "/os-services").json["services"][0]["status"] == "enabled"


def test_which_service(world: Any) -> None:
    scheduler = seeds.service(world, "control", "nova-scheduler")
    body = {"status": "disabled"}
    assert admin(world, "PUT", f"/os-services/{scheduler['uuid']}", body).status_code == 400
    assert admin(world, "PUT", f"/os-services/{seeds.NOWHERE}", body).status_code == 404
    assert admin(world, "PUT", "/os-services/1", body).status_code == 400
    assert world.request("PUT", f"/os-services/{scheduler['uuid']}", body, version="2.53").status_code == 403
    assert admin(world, "DELETE", "/os-services/x", version="2.1").status_code == 400


def test_actions_on_services_before_2_53(world: Any, host: Any) -> None:
    seeds.service(world)
    it = {"host": "h1", "binary": "nova-compute"}

    def put(action: str, version: str = "2.11", **more: Any) -> Any:
        return admin(world, "PUT", f"/os-services/{action}", it | more, version=version)

    assert put("disable").json == {"service": {**it, "status": "disabled"}}
    reason = put("disable-log-reason", disabled_reason="x").json["service"]
    assert reason == {**it, "status": "disabled", "disabled_reason": "x"}
    assert put("disable-log-reason").status_code == 400
    assert put("enable").json == {"service": {**it, "status": "enabled"}}
    assert put("force-down", forced_down=True).json == {"service": {**it, "forced_down": True}}
    assert put("force-down").status_code == 400
    assert put("force-down", version="2.10").status_code == 404
    assert put("explode").status_code == 404
    assert put("enable", host="h9").status_code == 404
    assert put("enable", binary="nova-conductor").status_code == 400


def test_a_host_is_up_again_only_after_it_cleaned_up_after_evacuations(world: Any) -> None:
    made = seeds.service(world, forced_down=True)
    server = seeds.server(world)
    values = {"source_compute": "h1", "status": "done", "migration_type": "evacuation", "instance_uuid": server}
    with world.cell("c1").database.write() as tx:
        tx.execute(sa.insert(MIGRATIONS).values(uuid=seeds.NOWHERE, deleted=0, **values))
    path = f"/os-services/{made['uuid']}"
    assert admin(world, "PUT", path, {"forced_down": False}).status_code == 400
    with world.cell("c1").database.write() as tx:
        tx.execute(sa.update(MIGRATIONS).values(status="completed"))
    assert admin(world, "PUT", path, {"forced_down": False}).status_code == 200


def test_b127_a_service_that_hosts_servers_is_not_deleted(world: Any) -> None:
    made = seeds.service(world)
    node(world)
    world.cloud.placement.host("h1", provider=NODE)
    with world.cells.api.write() as tx:
        host_mappings.host_mapping_create(tx, "h1", world.cell("c1").id)
    number = zone(world, "z", "h1")
    uuid = seeds.server(world)
    path = f"/os-services/{made['uuid']}"
    assert admin(world, "DELETE", path).status_code == 409
    assert NODE in world.cloud.placement.providers
    with world.cell("c1").database.write() as tx:
        tx.execute(sa.update(INSTANCES).where(INSTANCES.c.uuid == uuid).values(deleted=INSTANCES.c.id))
    gone = admin(world, "DELETE", path)
    assert (gone.status_code, gone.text) == (204, "")
    assert NODE not in world.cloud.placement.providers
    assert admin(world, "GET", "/os-services").json == {"services": []}
    assert admin(world, "GET", f"/os-aggregates/{number}").json["aggregate"]["hosts"] == []
    with world.cells.api.read() as tx:
        assert host_mappings.host_mapping_get(tx, "h1") is None
    with world.cell("c1").database.read() as tx:
        assert compute_nodes.compute_node_list(tx) == []
    assert admin(world, "DELETE", path).status_code == 404


def test_a_service_whose_provider_is_in_use_stays_whole(world: Any) -> None:
    made = seeds.service(world)
    node(world)
    world.cloud.placement.host("h1", provider=NODE)
    world.cloud.placement.fail("DELETE", "/resource_providers/", status=409)
    assert admin(world, "DELETE", f"/os-services/{made['uuid']}").status_code == 409
    assert len(admin(world, "GET", "/os-services").json["services"]) == 1
    with world.cell("c1").database.read() as tx:
        assert len(compute_nodes.compute_node_list(tx)) == 1


def test_b040_services_and_zones_while_a_cell_is_down(world: Any) -> None:
    seeds.service(world)
    seeds.service(world, "h2", cell="c2")
    with world.cells.api.write() as tx:
        host_mappings.host_mapping_create(tx, "h2", world.cell("c2").id)
    break_cell(world, "c2")
    listed = admin(world, "GET", "/os-services", version="2.69")
    assert listed.status_code == 200
    assert [s["status"] for s in listed.json["services"]] == ["enabled", "UNKNOWN"]
    unknown = {"binary": "nova-compute", "host": "h2", "status": "UNKNOWN"}
    assert listed.json["services"][1] == unknown
    assert admin(world, "GET", "/os-services?host=h2", version="2.69").json == {"services": [unknown]}
    assert [s["host"] for s in admin(world, "GET", "/os-services", version="2.68").json["services"]] == ["h1"]
    assert admin(world, "GET", "/os-availability-zone/detail").status_code == 200


def test_a_service_that_may_be_in_a_lost_cell_is_not_said_to_be_missing(world: Any) -> None:
    here, lost = seeds.service(world, forced_down=True), seeds.service(world, "h2", cell="c2")
    break_cell(world, "c2")
    assert admin(world, "PUT", f"/os-services/{lost['uuid']}", {"status": "disabled"}).status_code == 500
    assert admin(world, "DELETE", f"/os-services/{lost['uuid']}").status_code == 500
    by_name = {"host": "h2", "binary": "nova-compute"}
    assert admin(world, "PUT", "/os-services/disable", by_name, version="2.52").status_code == 500
    assert admin(world, "PUT", f"/os-services/{here['uuid']}", {"status": "disabled"}).status_code == 200


def test_of_two_hosts_the_last_counts(world: Any) -> None:
    seeds.service(world)
    seeds.service(world, "h2", cell="c2")
    listed = admin(world, "GET", "/os-services?host=h1&host=h2", version="2.74").json["services"]
    assert [one["host"] for one in listed] == ["h2"]


def test_numbers_of_services(world: Any) -> None:
    assert [admin(world, "DELETE", f"/os-services/{n}", version="2.52").status_code for n in ("-1", "9", "x")] == [
        *(404, 404),
        400,
    ]


def test_a_host_with_a_zone_stays_while_a_cell_is_down(world: Any) -> None:
    number = zone(world, "z", "h1")
    break_cell(world, "c2")
    body = {"remove_host": {"host": "h1"}}
    assert admin(world, "POST", f"/os-aggregates/{number}/action", body).status_code == 500


# ---------------------------------------------------------------- zones


def test_zones(world: Any) -> None:
    for host, off in (("h1", False), ("h2", True), ("h3", False)):
        seeds.service(world, host, disabled=off)
    seeds.service(world, "control", "nova-scheduler")
    zone(world, "z", "h1")
    zone(world, "a", "h2")
    names = [
        (z["zoneName"], z["zoneState"]["available"])
        for z in world.get("/os-availability-zone").json["availabilityZoneInfo"]
    ]
    assert names == [("nova", True), ("z", True), ("a", False)]
    assert world.get("/os-availability-zone/detail").status_code == 403
    detail = admin(world, "GET", "/os-availability-zone/detail").json["availabilityZoneInfo"]
    assert [z["zoneName"] for z in detail] == ["internal", "nova", "z", "a"]
    hosts = {z["zoneName"]: {h: list(s) for h, s in (z["hosts"] or {}).items()} for z in detail}
    assert hosts == {
        "internal": {"control": ["nova-scheduler"]},
        "nova": {"h3": ["nova-compute"]},
        "z": {"h1": ["nova-compute"]},
        "a": {},
    }
    assert detail[2]["hosts"]["h1"]["nova-compute"]["available"] is True
    assert detail[3]["hosts"] is None


def test_b046_zones_of_ten_thousand_services(world: Any) -> None:
    now = clock.naive_now()
    row = {"binary": "nova-compute", "topic": "compute", "version": 74, "report_count": 1, "deleted": 0}
    row |= {"last_seen_up": now, "disabled": False, "forced_down": False}
    with world.cell("c1").database.write() as tx:
        tx.execute(sa.insert(SERVICES), [row | {"host": f"h{n}", "uuid": f"{n:032x}"} for n in range(10_000)])
    world.get("/os-availability-zone/detail", **ADMIN)
    began = time.process_time()
    answer, count = statements(world, "/os-availability-zone/detail", **ADMIN)
    assert time.process_time() - began < 3
    assert len(answer.json["availabilityZoneInfo"][0]["hosts"]) == 10_000
    assert count <= 12


# ---------------------------------------------------------------- quotas


def test_quotas_of_a_project_and_of_a_user(world: Any) -> None:
    path = f"/os-quota-sets/{seeds.PROJECT}"
    assert world.get(path).json["quota_set"]["instances"] == 10
    set_ = {"quota_set": {"instances": 5, "cores": "7"}}
    assert world.request("PUT", path, set_).status_code == 403
    changed = admin(world, "PUT", path, set_).json["quota_set"]
    assert (changed["instances"], changed["cores"], "id" in changed) == (5, 7, False)
    assert admin(world, "PUT", f"{path}?user_id=joe", {"quota_set": {"instances": 6}}).status_code == 400
    of_user = admin(world, "PUT", f"{path}?user_id=joe", {"quota_set": {"instances": 3}}).json["quota_set"]
    assert (of_user["instances"], of_user["cores"]) == (3, 7)
    assert world.get(path).json["quota_set"]["instances"] == 5
    assert world.get(f"{path}/defaults").json["quota_set"]["instances"] == 10
    assert admin(world, "DELETE", f"{path}?user_id=joe").status_code == 202
    assert admin(world, "GET", f"{path}?user_id=joe").json["quota_set"]["instances"] == 5
    assert admin(world, "DELETE", path).status_code == 202
    assert world.get(path).json["quota_set"]["instances"] == 10


def test_a_quota_below_what_is_used_must_be_forced(world: Any) -> None:
    for _ in range(2):
        seeds.server(world)
    path = f"/os-quota-sets/{seeds.PROJECT}"
    refused = admin(world, "PUT", path, {"quota_set": {"instances": 1, "ram": 100_000}})
    assert refused.status_code == 400
    assert "already used and reserved 2" in refused.json["badRequest"]["message"]
    assert world.get(path).json["quota_set"]["ram"] == 51200
    forced = admin(world, "PUT", path, {"quota_set": {"instances": 1, "force": True}})
    assert forced.json["quota_set"]["instances"] == 1
    assert admin(world, "PUT", path, {"quota_set": {"instances": -1}}).json["quota_set"]["instances"] == -1
    shown = world.get(f"{path}/detail").json["quota_set"]
    assert (shown["instances"], shown["cores"]["in_use"]) == ({"limit": -1, "in_use": 2, "reserved": 0}, 2)


@pytest.mark.parametrize("wrong", [{"instances": -2}, {"instances": "x"}, {"bananas": 1}, {"instances": 2**31}])
def test_quotas_that_are_none(world: Any, wrong: Any) -> None:
    path = f"/os-quota-sets/{seeds.PROJECT}"
    assert admin(world, "PUT", path, {"quota_set": wrong}).status_code == 400
    assert world.get(path).json["quota_set"]["instances"] == 10


def test_a_quota_set_by_version(world: Any) -> None:
    path = f"/os-quota-sets/{seeds.PROJECT}"
    sets = {v: set(world.get(path, version=v).json["quota_set"]) for v in ("2.35", "2.36", "2.56", "2.57")}
    networks = {"fixed_ips", "floating_ips", "security_group_rules", "security_groups"}
    files = {"injected_files", "injected_file_content_bytes", "injected_file_path_bytes"}
    assert sets["2.35"] - sets["2.36"] == networks
    assert sets["2.56"] - sets["2.57"] == files
    assert admin(world, "PUT", path, {"quota_set": {"injected_files": 1}}, version="2.57").status_code == 400
    assert world.get(f"/os-quota-sets/{seeds.OTHER}").status_code == 403


def test_limits(world: Any) -> None:
    seeds.server(world, memory_mb=512, vcpus=2)
    absolute = world.get("/limits", version="2.57").json["limits"]["absolute"]
    assert (absolute["totalInstancesUsed"], absolute["totalCoresUsed"], absolute["totalRAMUsed"]) == (1, 2, 512)
    assert absolute["maxTotalInstances"] == 10
    assert "maxPersonality" not in absolute
    for project in (seeds.OTHER, seeds.PROJECT):
        assert world.get(f"/limits?tenant_id={project}").status_code == 403, "not even one's own by name"
    other = admin(world, "GET", f"/limits?tenant_id={seeds.OTHER}").json["limits"]["absolute"]
    assert other["totalInstancesUsed"] == 0


# ---------------------------------------------------------------- external events


def test_every_event_has_an_answer_of_its_own(world: Any, host: Any) -> None:
    here, nowhere_yet = seeds.server(world), seeds.server(world, host=None)
    events = [
        {"name": "network-vif-plugged", "server_uuid": here, "tag": "port"},
        {"name": "network-changed", "server_uuid": nowhere_yet},
        {"name": "network-changed", "server_uuid": seeds.NOWHERE},
        {"name": "volume-extended", "server_uuid": here},
    ]
    answer = admin(world, "POST", "/os-server-external-events", {"events": events})
    assert answer.status_code == 207
    found = [(event["code"], event["status"]) for event in answer.json["events"]]
    assert found == [(200, "completed"), (422, "failed"), (404, "failed"), (400, "failed")]
    sent = host.wait("external_instance_event")
    assert [(e.name, e.tag, e.status) for e in sent["events"]] == [("network-vif-plugged", "port", "completed")]
    assert [i.uuid for i in sent["instances"]] == [here]


def test_events_for_two_servers_of_a_host_are_one_message(world: Any, host: Any) -> None:
    servers = [seeds.server(world) for _ in range(2)]
    events = [{"name": "network-changed", "server_uuid": s, "status": "completed"} for s in [*servers, servers[0]]]
    answer = admin(world, "POST", "/os-server-external-events", {"events": events})
    assert answer.status_code == 200, answer.text
    sent = host.wait("external_instance_event")
    assert (len(sent["events"]), len(sent["instances"])) == (3, 2)


def test_events_are_not_for_everybody(world: Any) -> None:
    events = {"events": [{"name": "network-changed", "server_uuid": seeds.NOWHERE}]}
    assert world.post("/os-server-external-events", events).status_code == 403
    unknown = admin(world, "POST", "/os-server-external-events", events)
    assert (unknown.status_code, unknown.json["events"][0]["code"]) == (207, 404)
    assert admin(world, "POST", "/os-server-external-events", {"events": []}).status_code == 400
    newer = {"events": [{"name": "volume-extended", "server_uuid": seeds.NOWHERE, "tag": "v"}]}
    assert admin(world, "POST", "/os-server-external-events", newer, version="2.50").status_code == 400


# ---------------------------------------------------------------- instance actions


@pytest.fixture
def acted(world: Any) -> str:
    """A server with two actions; the second, req-2, has a failed event on h1."""
    uuid = seeds.server(world)
    with world.cell("c1").database.write() as tx:
        for number in (1, 2):
            context = RequestContext(user_id="joe", project_id=seeds.PROJECT, request_id=f"req-{number}")
            action_rows.action_start(tx, context, uuid, f"act{number}")
        action_rows.event_start(tx, context, uuid, "compute_act", host="h1")
        failed = action_rows.event_finish_with_failure
        failed(tx, context, uuid, "compute_act", exc_val="secret /etc/x", exc_tb="Traceback", want_result=False)
    return uuid


def test_the_actions_of_a_server(world: Any, acted: str) -> None:
    path = f"/servers/{acted}/os-instance-actions"
    listed = world.get(path, version="2.58").json["instanceActions"]
    assert [(a["action"], a["request_id"], a["user_id"]) for a in listed] == [
        ("act2", "req-2", "joe"),
        ("act1", "req-1", "joe"),
    ]
    paged = world.get(f"{path}?limit=1", version="2.58").json
    assert [a["action"] for a in paged["instanceActions"]] == ["act2"]
    assert "marker=req-2" in paged["links"][0]["href"]
    after = world.get(f"{path}?limit=1&marker=req-2", version="2.58").json
    assert [a["action"] for a in after["instanceActions"]] == ["act1"]
    assert world.get(f"{path}?marker=req-9", version="2.58").status_code == 400
    swapped = "changes-since=2026-01-02T00:00:00&changes-before=2026-01-01T00:00:00"
    assert world.get(f"{path}?{swapped}", version="2.66").status_code == 400
    assert world.get(f"{path}?changes-since=2126-01-02T00:00:00", version="2.58").json["instanceActions"] == []
    assert world.get(path, project=seeds.OTHER).status_code == 404


def test_b055_the_events_of_an_action_say_to_each_what_is_theirs(world: Any, acted: str) -> None:
    path = f"/servers/{acted}/os-instance-actions/req-2"
    assert "events" not in world.get(path, version="2.50").json["instanceAction"]
    (own,) = world.get(path, version="2.84").json["instanceAction"]["events"]
    assert (own["event"], own["result"]) == ("compute_act", "Error")
    assert not {"traceback", "host"} & own.keys()
    assert "secret" not in str(own)
    (whole,) = admin(world, "GET", path, version="2.84").json["instanceAction"]["events"]
    assert (whole["host"], whole["traceback"]) == ("h1", "Traceback")
    assert whole["hostId"] == own["hostId"] != ""
    assert world.get(f"/servers/{acted}/os-instance-actions/req-9").status_code == 404


def test_the_actions_of_a_deleted_server_are_shown_since_2_21(world: Any, acted: str) -> None:
    with world.cell("c1").database.write() as tx:
        tx.execute(sa.update(INSTANCES).where(INSTANCES.c.uuid == acted).values(deleted=INSTANCES.c.id))
    path = f"/servers/{acted}/os-instance-actions"
    assert world.get(path, version="2.20").status_code == 404
    assert len(world.get(path, version="2.21").json["instanceActions"]) == 2


# ---------------------------------------------------------------- lists of servers


def test_b031_a_marker_among_failed_servers(world: Any) -> None:
    made = [
        seeds.server(world, cell, created_at=seeds.NOW.replace(second=n)) for n, cell in enumerate(["cell0", "c1"] * 3)
    ]
    for limit in range(1, 7):
        found: list[str] = []
        while True:
            marker = f"&marker={found[-1]}" if found else ""
            page = world.get(f"/servers?limit={limit}{marker}").json
            found += [s["id"] for s in page["servers"]]
            if "servers_links" not in page or not page["servers"]:
                break
        assert found == made[::-1], limit


def test_b034_the_fault_is_the_same_in_a_list(world: Any) -> None:
    from kilonova.db.cell.tables import INSTANCE_FAULTS

    for cell, vm_state in (("c1", "error"), ("cell0", "error"), ("c1", "active")):
        uuid = seeds.server(world, cell, vm_state=vm_state)
        fault = {"instance_uuid": uuid, "code": 500, "message": "No valid host", "details": "why", "host": "h1"}
        with world.cell(cell).database.write() as tx:
            tx.execute(sa.insert(INSTANCE_FAULTS).values(deleted=0, created_at=seeds.NOW, **fault))
    for user in ("joe", "admin"):
        listed = world.get("/servers/detail", version="2.96", user=user).json["servers"]
        assert sorted("fault" in s for s in listed) == [False, True, True]
        for server in listed:
            alone = world.get(f"/servers/{server['id']}", version="2.96", user=user).json["server"]
            assert alone.get("fault") == server.get("fault")
            assert ("details" in server.get("fault", {})) == (user == "admin" and "fault" in server)


def test_b040_servers_while_a_cell_is_down(world: Any) -> None:
    here, lost = seeds.server(world), seeds.server(world, "c2")
    break_cell(world, "c2")
    assert [s["id"] for s in world.get("/servers", version="2.68").json["servers"]] == [here]
    partial = {s["id"]: s for s in world.get("/servers/detail", version="2.69").json["servers"]}
    assert (set(partial), partial[lost]["status"]) == ({here, lost}, "UNKNOWN")
    assert world.get(f"/servers/{lost}/metadata").status_code == 500
    assert "does not answer" in world.get(f"/servers/{lost}/ips").json["computeFault"]["message"]


def test_what_was_removed_answers_so_in_its_versions_only(world: Any) -> None:
    body = {"os-getRDPConsole": {"type": "rdp-html5"}}
    path = f"/servers/{ids.new_uuid()}/action"
    answers = [world.post(path, body, version=version).status_code for version in ("2.1", "2.5", "2.6", "2.96")]
    assert answers == [400, 400, 404, 404]
    console = f"/servers/{ids.new_uuid()}/consoles"
    assert [world.get(console, version=version).status_code for version in ("2.1", "2.96")] == [410, 410]


def test_load_balancers_may_ask_without_a_token(world: Any) -> None:
    client = falcon.testing.TestClient(world.app)
    assert client.simulate_get("/healthcheck").status_code == 200
    assert client.simulate_head("/healthcheck").status_code == 204
    assert client.simulate_get("/v2.1/healthcheck").status_code == 401


@pytest.mark.parametrize(("zone", "code"), [("a:b", 400), (" a", 400), ("", 400), ("é zone", 200)])
def test_a_zone_is_named_alike_at_both_doors(world: Any, zone: str, code: int) -> None:
    made = admin(world, "POST", "/os-aggregates", {"aggregate": {"name": "x"}}).json["aggregate"]["id"]
    body = {"set_metadata": {"metadata": {"availability_zone": zone}}}
    assert admin(world, "POST", f"/os-aggregates/{made}/action", body).status_code == code
    named = {"aggregate": {"name": "y", "availability_zone": zone}}
    assert admin(world, "POST", "/os-aggregates", named).status_code == code
