"""Run by the peer's Python: migrate, write or read its databases by its own code.

migrate api|main URL REVISION
write CONF          puts records of every kind down, prints their ids as JSON
read CONF           prints what it understands of every server, service and node as JSON
"""

import json
import os
import sys


def migrate(which, url, revision):
    import nova
    import sqlalchemy as sa
    from alembic import command, config

    settings = config.Config(os.path.join(os.path.dirname(nova.__file__), "db", which, "alembic.ini"))
    settings.attributes["configure_logger"] = False
    with sa.create_engine(url).begin() as connection:
        settings.attributes["connection"] = connection
        command.upgrade(settings, revision)


def _begin(conf):
    from nova import config, context, objects

    objects.register_all()
    config.parse_args(["peer", "--config-file", conf])
    return objects, context, context.get_admin_context()


def write(conf):
    objects, context, ctxt = _begin(conf)
    ctxt.user_id, ctxt.project_id = "u", "p"
    flavor = objects.Flavor(ctxt, flavorid="f1", name="small", memory_mb=512, vcpus=2, root_gb=1, ephemeral_gb=0)
    flavor.swap, flavor.rxtx_factor, flavor.is_public, flavor.disabled = 0, 1.0, True, False
    flavor.extra_specs = {"hw:cpu_policy": "dedicated"}
    flavor.create()
    objects.KeyPair(ctxt, user_id="u", name="key", public_key="ssh-rsa A", fingerprint="f", type="ssh").create()
    aggregate = objects.Aggregate(ctxt, name="agg", metadata={"availability_zone": "zone"})
    aggregate.create()
    group = objects.InstanceGroup(ctxt, user_id="u", project_id="p", name="grp", policy="anti-affinity", rules={})
    group.create()
    cell = objects.CellMappingList.get_all(ctxt)[-1]
    with context.target_cell(ctxt, cell) as inside:
        server = objects.Instance(
            inside,
            user_id="u",
            project_id="p",
            display_name="theirs",
            vm_state="active",
            flavor=flavor,
            old_flavor=None,
            new_flavor=None,
            metadata={"a": "1"},
            system_metadata={"image_base_image_ref": "i"},
            host=None,
            memory_mb=512,
            vcpus=2,
            root_gb=1,
            ephemeral_gb=0,
            numa_topology=objects.InstanceNUMATopology(
                cells=[
                    objects.InstanceNUMACell(
                        id=0, cpuset=set(), pcpuset={0, 1}, memory=512, cpu_policy="dedicated", pagesize=4
                    )
                ]
            ),
        )
        server.create()
        objects.TagList.create(inside, server.uuid, ["tag"])
        device = objects.BlockDeviceMapping(inside, instance_uuid=server.uuid, source_type="volume", volume_id="v")
        device.destination_type, device.boot_index, device.device_name = "volume", 0, "/dev/vda"
        device.create()
        fault = objects.InstanceFault(inside, instance_uuid=server.uuid, code=500, message="m", details="d", host="h")
        fault.create()
        objects.InstanceAction.action_start(inside, server.uuid, "create")
        service = objects.Service(inside, host="h", binary="nova-compute", topic="compute")
        service.create()
    objects.InstanceMapping(
        ctxt, instance_uuid=server.uuid, project_id="p", user_id="u", cell_mapping=cell, queued_for_delete=False
    ).create()
    group.add_members(ctxt, group.uuid, [server.uuid])
    spec = objects.RequestSpec(ctxt, instance_uuid=server.uuid, flavor=flavor, num_instances=1, project_id="p")
    spec.user_id, spec.image, spec.numa_topology, spec.pci_requests = "u", None, None, None
    spec.availability_zone = "zone"
    spec.create()
    return {"server": server.uuid, "group": group.uuid, "aggregate": aggregate.id, "service": service.uuid}


def read(conf):
    from nova.objects import instance as instances

    objects, context, ctxt = _begin(conf)
    wanted = [name for name in instances.INSTANCE_OPTIONAL_ATTRS if name != "ec2_ids"]
    servers, services, nodes = {}, [], []
    for cell in objects.CellMappingList.get_all(ctxt):
        with context.target_cell(ctxt, cell) as inside:
            for found in objects.InstanceList.get_by_filters(inside, {"deleted": False}, expected_attrs=wanted):
                devices = objects.BlockDeviceMappingList.get_by_instance_uuid(inside, found.uuid)
                actions = objects.InstanceActionList.get_by_instance_uuid(inside, found.uuid)
                spec = objects.RequestSpec.get_by_instance_uuid(ctxt, found.uuid)
                mapping = objects.InstanceMapping.get_by_instance_uuid(ctxt, found.uuid)
                servers[found.uuid] = {
                    "cell": cell.name,
                    "state": found.vm_state,
                    "host": found.host,
                    "flavor": found.flavor.name,
                    "metadata": dict(found.metadata),
                    "tags": [tag.tag for tag in found.tags],
                    "fault": found.fault and found.fault.message,
                    "vifs": len(found.info_cache.network_info),
                    "devices": [[one.source_type, one.destination_type] for one in devices],
                    "actions": [[one.action, one.message] for one in actions],
                    "spec": [spec.flavor.name, spec.num_instances],
                    "mapping": [mapping.cell_mapping.name, mapping.user_id, mapping.queued_for_delete],
                }
            services += [[one.host, one.binary] for one in objects.ServiceList.get_all(inside)]
            nodes += [[one.host, one.vcpus, one.mapped] for one in objects.ComputeNodeList.get_all(inside)]
    return {"servers": servers, "services": services, "nodes": nodes}


if __name__ == "__main__":
    answer = {"migrate": migrate, "write": write, "read": read}[sys.argv[1]](*sys.argv[2:])
    print("ANSWER " + json.dumps(answer))
