"""Building servers on a host: works, fails at every step, gives way to a delete."""

from __future__ import annotations

from tests.unit.compute.world import World


def test_a_server_is_built(world: World) -> None:
    world.host()
    ctxt = world.ctxt()
    asked = world.asked(ctxt)
    world.cast_build(ctxt, asked)
    server = world.until(asked.uuid, vm_state="active", task_state=None)
    assert (server.host, server.node, server.power_state) == ("h1", "h1", 1)
    assert server.launched_at is not None
    assert server.root_device_name == "/dev/vda"
    [vif] = server.info_cache.network_info
    [port] = world.cloud.neutron.ports_of(asked.uuid)
    assert vif["id"] == port["id"]
    assert port["binding:host_id"] == "h1"
    assert world.driver().guest(asked.uuid).power_state == 1
    world.idle()
    assert world.events(asked.uuid, ctxt.request_id) == [("compute__do_build_and_run_instance", "Success")]
    assert ("update", asked.uuid) in world.schedulers.told
