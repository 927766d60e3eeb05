"""Run by the peer's interpreter: objects of the peer's compute service, carried out by our conductor.

Walks the calls that a compute host makes in its life and prints what came back as JSON, one step a line.
"""

import json
import sys
import warnings

warnings.simplefilter("ignore")

import oslo_messaging  # noqa: E402
from nova import config, context, exception, objects, rpc  # noqa: E402
from nova.conductor import api as conductor_api  # noqa: E402,F401
from nova.conductor import rpcapi  # noqa: E402
from nova.network import model  # noqa: E402
from nova.objects import base  # noqa: E402
from oslo_utils import timeutils  # noqa: E402

SERVER, NODE = sys.argv[3], sys.argv[4]


def start(url, exchange):
    config.parse_args(["nova", "--config-file", "/dev/null"], configure_db=False, init_rpc=False)
    oslo_messaging.TransportURL.parse(config.CONF, url)
    config.CONF.set_override("transport_url", url)
    objects.register_all()
    config.CONF.set_override("control_exchange", exchange)
    rpc.init(config.CONF)
    base.NovaObject.indirection_api = rpcapi.ConductorAPI()


def say(step, value):
    print(json.dumps([step, value]), flush=True)


def refused(call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except exception.NovaException as exc:
        return type(exc).__name__.removesuffix("_Remote")
    return None


def service(ctxt):
    record = objects.Service(ctxt, host="peer-host", binary="nova-compute", topic="compute", report_count=0)
    record.create()
    record.report_count += 1
    record.last_seen_up = timeutils.utcnow()
    record.save()
    found = objects.Service.get_by_host_and_binary(ctxt, "peer-host", "nova-compute")
    say("service", [found.report_count, found.version, found.uuid == record.uuid])
    say("minimum", objects.Service.get_minimum_version(ctxt, "nova-compute"))
    say("missing service", objects.Service.get_by_args(ctxt, "nowhere", "nova-compute") is None)
    return record


def node(ctxt, record):
    numa = objects.NUMATopology(cells=[])
    one = objects.ComputeNode(
        ctxt,
        service_id=record.id,
        host="peer-host",
        hypervisor_hostname="peer-node",
        uuid=NODE,
        vcpus=4,
        memory_mb=2048,
        local_gb=20,
        vcpus_used=0,
        memory_mb_used=0,
        local_gb_used=0,
        hypervisor_type="fake",
        hypervisor_version=1000,
        cpu_info="{}",
        cpu_allocation_ratio=4.0,
        ram_allocation_ratio=1.0,
        disk_allocation_ratio=1.0,
        numa_topology=numa._to_json(),
        stats={"num_instances": "0"},
        supported_hv_specs=[objects.HVSpec(arch="x86_64", hv_type="fake", vm_mode="hvm")],
    )
    one.create()
    one.vcpus_used = 2
    one.stats = {"num_instances": "1"}
    one.save()
    found = objects.ComputeNode.get_by_host_and_nodename(ctxt, "peer-host", "peer-node")
    say("node", [found.vcpus_used, found.stats, found.supported_hv_specs[0].arch, found.uuid == NODE])
    say("nodes", [n.hypervisor_hostname for n in objects.ComputeNodeList.get_all_by_host(ctxt, "peer-host")])
    say("missing node", refused(objects.ComputeNode.get_by_host_and_nodename, ctxt, "peer-host", "other"))
    return found


def build(ctxt, one):
    server = objects.Instance.get_by_uuid(ctxt, SERVER, expected_attrs=["metadata", "system_metadata", "flavor"])
    say("flavor", [server.flavor.name, server.flavor.extra_specs, server.system_metadata])
    event = objects.InstanceActionEvent.event_start(ctxt, SERVER, "compute__do_build_and_run_instance", "peer-host")
    say("event", event.event)
    server.host, server.node, server.compute_id, server.launched_on = "peer-host", "peer-node", one.id, "peer-host"
    server.task_state = "spawning"
    server.save(expected_task_state=["scheduling", None])
    say("wrong state", refused(save_expecting, server, "networking"))
    server.system_metadata["image_hw_machine_type"] = "q35"
    server.info_cache = objects.InstanceInfoCache(
        ctxt, instance_uuid=SERVER, network_info=model.NetworkInfo([model.VIF(id="vif-1", network=None)])
    )
    server.info_cache.save()
    vif = objects.VirtualInterface(ctxt, address="fa:16:3e:00:00:01/vif-1", instance_uuid=SERVER, uuid=NODE, tag="t")
    vif.create()
    server.vm_state, server.task_state, server.power_state = "active", None, 1
    server.launched_at = timeutils.utcnow()
    server.save(expected_task_state="spawning")
    objects.InstanceActionEvent.event_finish_with_failure(
        ctxt, SERVER, "compute__do_build_and_run_instance", exc_val=None, exc_tb=None
    )
    return server


def save_expecting(server, state):
    server.display_description = "never"
    try:
        server.save(expected_task_state=state)
    finally:
        server.obj_reset_changes(["display_description"])


def read_back(ctxt, server):
    found = objects.Instance.get_by_uuid(ctxt, SERVER, expected_attrs=["info_cache", "system_metadata"])
    say("built", [found.vm_state, found.task_state, found.host, found.launched_at is not None])
    say("metadata", found.system_metadata)
    say("network", [v["id"] for v in found.info_cache.network_info])
    say("lazy", [len(found.tags), found.numa_topology is None, found.pci_requests.requests, found.fault is None])
    say("lazy devices", [len(found.pci_devices), found.migration_context is None, found.flavor.name])
    say("by host", [i.uuid == SERVER for i in objects.InstanceList.get_by_host(ctxt, "peer-host")])
    say("uuids", objects.InstanceList.get_uuids_by_host(ctxt, "peer-host") == [SERVER])
    filters = {"host": "peer-host", "deleted": False}
    say("filters", len(objects.InstanceList.get_by_filters(ctxt, filters, expected_attrs=[])))
    say("vifs", [v.tag for v in objects.VirtualInterfaceList.get_by_instance_uuid(ctxt, SERVER)])
    server.refresh()
    say("refreshed", server.vm_state)


def devices(ctxt, one):
    bdm = objects.BlockDeviceMapping(
        ctxt,
        instance_uuid=SERVER,
        source_type="image",
        destination_type="local",
        boot_index=0,
        device_name="/dev/vda",
        image_id=NODE,
        delete_on_termination=True,
        device_type="disk",
        disk_bus="virtio",
        guest_format=None,
    )
    bdm.create()
    bdm.volume_size = 1
    bdm.save()
    say("bdms", [b.volume_size for b in objects.BlockDeviceMappingList.get_by_instance_uuid(ctxt, SERVER)])
    bdm.destroy()
    say("bdms after", len(objects.BlockDeviceMappingList.get_by_instance_uuid(ctxt, SERVER)))
    say("pci", len(objects.PciDeviceList.get_by_compute_node(ctxt, one.id)))
    say("shares", len(objects.ShareMappingList.get_by_instance_uuid(ctxt, SERVER)))


def failures(ctxt):
    fault = objects.InstanceFault(ctxt, instance_uuid=SERVER, code=500, message="broken", host="peer-host", details="d")
    fault.create()
    say("fault", objects.InstanceFault.get_latest_for_instance(ctxt, SERVER).message)
    move = objects.Migration(
        ctxt,
        instance_uuid=SERVER,
        source_compute="peer-host",
        dest_compute="other",
        source_node="peer-node",
        dest_node="n",
        migration_type="live-migration",
        status="accepted",
        old_instance_type_id=1,
        new_instance_type_id=1,
    )
    move.create()
    move.status = "running"
    move.save()
    running = objects.MigrationList.get_in_progress_by_host_and_node(ctxt, "peer-host", "peer-node")
    say("moves", [m.status for m in running])
    say("aggregates", len(objects.AggregateList.get_by_host(ctxt, "peer-host")))
    say("no server", refused(objects.Instance.get_by_uuid, ctxt, NODE))


def end(ctxt, server, record):
    server.destroy()
    say("gone", refused(objects.Instance.get_by_uuid, ctxt, SERVER))
    say("gone twice", refused(server.save))
    with_deleted = context.get_admin_context(read_deleted="yes")
    say("deleted", bool(objects.Instance.get_by_uuid(with_deleted, SERVER).deleted))
    record.destroy()
    say("service gone", objects.Service.get_by_args(ctxt, "peer-host", "nova-compute") is None)


start(sys.argv[1], sys.argv[2])
CONTEXT = context.get_admin_context()
CONTEXT.request_id = sys.argv[5]
SERVICE = service(CONTEXT)
FOUND = node(CONTEXT, SERVICE)
BUILT = build(CONTEXT, FOUND)
read_back(CONTEXT, BUILT)
devices(CONTEXT, FOUND)
failures(CONTEXT)
end(CONTEXT, BUILT, SERVICE)
say("end", None)
