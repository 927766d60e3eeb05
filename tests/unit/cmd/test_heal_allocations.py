"""nova-manage placement heal_allocations: what servers hold afterwards, and the exit codes."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fakes.placement import Provider, inventory
from tests.unit.cmd.placed import NOWHERE, WHOLE, Placed, flavor

from kilonova.cmd.manage import healing
from kilonova.db.cell import instances

BANDWIDTH = {"NET_BW_EGR_KILOBIT_PER_SEC": 1000}


def test_server_without_allocations_gets_them(placed: Placed, capsys: pytest.CaptureFixture[str]) -> None:
    node = placed.host("h")
    server = placed.server("h")
    capsys.readouterr()
    assert placed.heal("--verbose") == 0
    assert placed.placement.held(server) == {node: WHOLE}
    consumer = placed.placement.consumers[server]
    assert (consumer.project, consumer.user) == ("p", "u")
    assert f"Created the allocations of server {server}" in capsys.readouterr().out
    assert placed.heal() == 4


def test_volume_backed_servers_hold_no_root_disk(placed: Placed) -> None:
    node = placed.host("h")
    mapped, without_image = placed.server("h", volume=True), placed.server("h", image_ref="")
    assert placed.heal() == 0
    for server in (mapped, without_image):
        assert placed.placement.held(server) == {node: {**WHOLE, "DISK_GB": 1}}


def test_image_and_flavor_say_which_cpus(placed: Placed) -> None:
    node = placed.host("h")
    placed.placement.providers[node].inventories["PCPU"] = inventory(8)
    pinned = placed.server("h", system_metadata={"image_hw_cpu_policy": "dedicated"})
    custom = placed.server("h", kept=flavor(extra_specs={"resources:VCPU": "1", "resources:MEMORY_MB": "0"}))
    assert placed.heal() == 0
    assert placed.placement.held(pinned)[node] == {"PCPU": 2, "MEMORY_MB": 512, "DISK_GB": 5}
    assert placed.placement.held(custom)[node] == {"VCPU": 1, "DISK_GB": 5}


def test_owner_is_put_right_and_the_rest_kept(placed: Placed, capsys: pytest.CaptureFixture[str]) -> None:
    node = placed.host("h")
    server = placed.server("h")
    placed.hold(server, {node: {"VCPU": 1}}, project="another")
    assert placed.heal("--verbose") == 0
    assert placed.placement.held(server) == {node: {"VCPU": 1}}
    assert placed.placement.consumers[server].project == "p"
    assert "Updated the allocations" in capsys.readouterr().out


def test_force_replaces_what_is_held(placed: Placed) -> None:
    node, other = placed.host("h"), placed.host("other")
    server = placed.server("h")
    placed.hold(server, {other: {"VCPU": 7}})
    assert placed.heal("--instance", server) == 4
    assert placed.heal("--instance", server, "--force") == 0
    assert placed.placement.held(server) == {node: WHOLE}


def test_dry_run_writes_nothing(placed: Placed, capsys: pytest.CaptureFixture[str]) -> None:
    placed.host("h")
    server = placed.server("h")
    assert placed.heal("--dry-run", "--verbose") == 4
    assert f"[dry-run] Create the allocations of server {server}" in capsys.readouterr().out
    assert not placed.placement.consumers


@pytest.mark.parametrize(
    "values", [{"task_state": "deleting"}, {"host": None, "node": None}, {"vm_state": "soft-delete"}], ids=str
)
def test_busy_and_homeless_servers_are_passed_over(placed: Placed, values: dict[str, Any]) -> None:
    placed.host("h")
    placed.server("h", **values) if "host" not in values else placed.server(None)
    assert placed.heal() == 4
    assert not placed.placement.consumers


def test_deleted_server_and_one_without_a_cell_need_nothing(placed: Placed) -> None:
    placed.host("h")
    server = placed.server("h")
    placed.cloud.cell.run(instances.instance_destroy, server)
    placed.mapping(NOWHERE, None)
    assert placed.heal("--instance", server) == 4
    assert placed.heal("--instance", NOWHERE) == 4
    assert not placed.placement.consumers


def test_server_that_is_deleted_meanwhile_gets_nothing(placed: Placed, monkeypatch: pytest.MonkeyPatch) -> None:
    placed.host("h")
    server = placed.server("h")
    plan = healing.Healer._plan

    def deleted_meanwhile(*args: Any) -> Any:
        placed.cloud.cell.run(instances.instance_destroy, server)
        return plan(*args)

    monkeypatch.setattr(healing.Healer, "_plan", deleted_meanwhile)
    assert placed.heal() == 4
    assert not placed.placement.consumers


def test_max_count_is_a_total(placed: Placed) -> None:
    placed.host("h")
    servers = [placed.server("h") for _ in range(5)]
    assert placed.heal("--max-count", "2") == 1
    assert placed.heal("--max-count", "2") == 1
    assert sorted(placed.placement.consumers) == sorted(servers[:4])
    assert placed.heal("--max-count", "2") == 0
    assert placed.heal("--max-count", "2") == 4


def test_more_servers_than_one_batch(placed: Placed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kilonova.cmd.manage.heal.BATCH", 2)
    placed.host("h")
    servers = [placed.server("h", kept=flavor(vcpus=1, root_gb=0)) for _ in range(5)]
    assert placed.heal() == 0
    assert sorted(placed.placement.consumers) == sorted(servers)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--max-count", "0"), "positive"),
        (("--max-count", "many"), "positive"),
        (("--instance", NOWHERE, "--cell", NOWHERE), "exclude"),
        (("--force",), "--instance"),
        (("--instance", NOWHERE), "not mapped"),
        (("--cell", NOWHERE), "no cell"),
    ],
    ids=str,
)
def test_wrong_arguments(placed: Placed, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert placed.heal(*words) == 127
    assert said in capsys.readouterr().out


def test_one_cell_only(placed: Placed) -> None:
    placed.host("h")
    server = placed.server("h")
    assert placed.heal("--cell", placed.cell_uuid) == 0
    assert server in placed.placement.consumers


def test_missing_node_does_not_stop_the_others(placed: Placed, capsys: pytest.CaptureFixture[str]) -> None:
    placed.host("h")
    lost, healthy = placed.server("gone"), placed.server("h")
    assert placed.heal() == 2
    assert list(placed.placement.consumers) == [healthy]
    assert f"Server {lost} cannot be healed. There is no compute node gone" in capsys.readouterr().out


def test_no_room(placed: Placed) -> None:
    placed.host("h", vcpu=0)
    server = placed.server("h")
    assert placed.heal() == 3
    assert not placed.placement.held(server)


@pytest.mark.parametrize("spec", ["resources:VGPU", "accel:device_profile"])
def test_devices_only_the_host_knows(placed: Placed, spec: str) -> None:
    placed.host("h")
    placed.server("h", kept=flavor(extra_specs={spec: "1"}))
    healthy = placed.server("h")
    assert placed.heal() == 8
    assert list(placed.placement.consumers) == [healthy]


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_placement_that_is_down(placed: Placed, method: str, capsys: pytest.CaptureFixture[str]) -> None:
    placed.host("h")
    placed.server("h")
    placed.placement.fail(method, "/allocations/", status=503, times=99)
    assert placed.heal() == 3
    assert "Placement does not answer" in capsys.readouterr().out


def test_consumer_that_changes_meanwhile_is_looked_at_again(placed: Placed) -> None:
    node = placed.host("h")
    server = placed.server("h")
    conflict = {"errors": [{"code": "placement.concurrent_update", "detail": "consumer generation conflict"}]}
    placed.placement.fail("PUT", "/allocations/", status=409, body=conflict, times=2)
    assert placed.heal() == 0
    assert placed.placement.held(server) == {node: WHOLE}
    placed.placement.consumers.clear()
    placed.placement.fail("PUT", "/allocations/", status=409, body=conflict, times=99)
    assert placed.heal() == 3


def test_provider_that_changes_meanwhile(placed: Placed) -> None:
    placed.host("h")
    server = placed.server("h")
    conflict = {"errors": [{"code": "placement.concurrent_update", "detail": "resource provider generation conflict"}]}
    placed.placement.fail("PUT", "/allocations/", status=409, body=conflict, times=2)
    assert placed.heal() == 0
    assert placed.placement.held(server)


def test_cell_that_is_down_does_not_stop_the_others(placed: Placed, capsys: pytest.CaptureFixture[str]) -> None:
    placed.host("h")
    server = placed.server("h")
    lost = placed.lose_cell()
    assert placed.heal() == 255
    assert placed.placement.held(server)
    assert f"Cell {lost} does not answer" in capsys.readouterr().out


# --- ports -----------------------------------------------------------------------------------


class Wired:
    """A server with a port that wants bandwidth, and providers of it below its node."""

    def __init__(self, placed: Placed, ways: int = 1) -> None:
        self.placed = placed
        self.node = placed.host("h")
        self.server = placed.server("h")
        self.nics = [self.nic() for _ in range(ways)]
        self.port = self.new_port()

    def nic(self) -> str:
        uuid = f"{len(self.placed.placement.providers):08d}-0000-4000-8000-000000000000"
        amounts = {"NET_BW_EGR_KILOBIT_PER_SEC": inventory(10000)}
        self.placed.placement.providers[uuid] = Provider(uuid, uuid, self.node, self.node, 1, amounts, {"CUSTOM_NET"})
        return uuid

    def new_port(self, **more: Any) -> str:
        neutron = self.placed.neutron
        network = neutron.network()
        group = {"id": f"group-{len(neutron.ports)}", "resources": dict(BANDWIDTH), "required": ["CUSTOM_NET"]}
        port = neutron.port(network, device_id=self.server, **more)
        neutron.ports[port]["resource_request"] = {"request_groups": [group], "same_subtree": [group["id"]]}
        return port

    def profile(self, port: str | None = None) -> dict[str, Any]:
        return dict(self.placed.neutron.ports[port or self.port].get("binding:profile") or {})

    def group(self, port: str) -> str:
        return str(self.placed.neutron.ports[port]["resource_request"]["request_groups"][0]["id"])


def test_port_gets_its_bandwidth(placed: Placed) -> None:
    wired = Wired(placed)
    placed.hold(wired.server, {wired.node: dict(WHOLE)})
    assert placed.heal() == 0
    assert placed.placement.held(wired.server) == {wired.node: WHOLE, wired.nics[0]: BANDWIDTH}
    assert wired.profile() == {"allocation": {wired.group(wired.port): wired.nics[0]}}
    assert placed.heal() == 4


def test_port_in_neutron_without_groups(placed: Placed) -> None:
    wired = Wired(placed)
    placed.neutron.extension_aliases.remove("port-resource-request-groups")
    placed.neutron.ports[wired.port]["resource_request"] = {"resources": dict(BANDWIDTH), "required": ["CUSTOM_NET"]}
    assert placed.heal() == 0
    assert placed.placement.held(wired.server) == {wired.node: WHOLE, wired.nics[0]: BANDWIDTH}
    assert wired.profile() == {"allocation": wired.nics[0]}


def test_ports_may_be_left_out(placed: Placed) -> None:
    wired = Wired(placed)
    assert placed.heal("--skip-port-allocations") == 0
    assert placed.placement.held(wired.server) == {wired.node: WHOLE}
    assert not placed.neutron.calls


def test_port_whose_provider_is_known_keeps_it(placed: Placed) -> None:
    """Also when the server is forced to what its flavor says, or a run died before it wrote to Placement."""
    wired = Wired(placed, ways=2)
    placed.neutron.ports[wired.port]["binding:profile"] = {"allocation": {wired.group(wired.port): wired.nics[1]}}
    assert placed.heal("--instance", wired.server, "--force") == 0
    assert placed.placement.held(wired.server) == {wired.node: WHOLE, wired.nics[1]: BANDWIDTH}


def test_ambiguous_port_is_not_guessed(placed: Placed, capsys: pytest.CaptureFixture[str]) -> None:
    wired = Wired(placed, ways=2)
    assert placed.heal() == 3
    assert "Several providers" in capsys.readouterr().out
    assert not placed.placement.consumers
    assert not wired.profile()


def test_port_without_room(placed: Placed, capsys: pytest.CaptureFixture[str]) -> None:
    Wired(placed, ways=0)
    assert placed.heal() == 3
    assert "no room" in capsys.readouterr().out


def test_two_ports_with_a_policy(placed: Placed) -> None:
    wired = Wired(placed)
    second = wired.new_port()
    assert placed.heal() == 0
    assert placed.placement.held(wired.server)[wired.nics[0]] == {"NET_BW_EGR_KILOBIT_PER_SEC": 2000}
    assert wired.profile(second) == {"allocation": {wired.group(second): wired.nics[0]}}


def test_neutron_that_does_not_show_ports(placed: Placed) -> None:
    Wired(placed)
    placed.neutron.fail("GET", "/v2.0/ports", status=403, times=99)
    assert placed.heal() == 5
    assert not placed.placement.consumers


def test_neutron_that_does_not_change_a_port(placed: Placed) -> None:
    wired = Wired(placed)
    second = wired.new_port()
    placed.neutron.fail("PUT", f"/v2.0/ports/{second}", status=400, times=1)
    assert placed.heal() == 6
    assert not placed.placement.consumers
    assert not wired.profile()
    assert not wired.profile(second)


def test_neutron_that_does_not_change_back(
    placed: Placed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wired = Wired(placed)
    placed.placement.providers[wired.node].inventories["VCPU"] = inventory(0)
    dispatch = placed.placement._dispatch

    def refuse_and_lose_neutron(request: Any) -> Any:
        if request.method == "PUT":
            placed.neutron.fail("PUT", "/v2.0/ports/", status=400, times=9)
        return dispatch(request)

    monkeypatch.setattr(placed.placement, "_dispatch", refuse_and_lose_neutron)
    assert placed.heal() == 7
    assert f"by hand: {wired.port}" in capsys.readouterr().out


def test_ports_are_as_before_when_placement_refuses(placed: Placed) -> None:
    wired = Wired(placed)
    placed.placement.fail("PUT", "/allocations/", status=400, times=1)
    assert placed.heal() == 3
    assert not wired.profile()
    assert placed.heal() == 0
    assert wired.profile()
