"""Run by the peer's interpreter: what its API and operators change through objects.

`peer_control.py bus URL EXCHANGE CELL_URL` lets our conductor carry it out, `peer_control.py database API_URL CELL_URL`
the peer's own objects on a database. Either prints what came back as JSON, one step a line; both should say the same.
"""

import json
import sys
import warnings

warnings.simplefilter("ignore")

import oslo_messaging  # noqa: E402
from nova import config, context, exception, objects, rpc  # noqa: E402
from nova.conductor import api as conductor_api  # noqa: E402,F401
from nova.conductor import rpcapi  # noqa: E402
from nova.objects import base  # noqa: E402
from oslo_utils import uuidutils  # noqa: E402

CHANGING = {"id", "uuid", "created_at", "updated_at", "database_connection"}


def start_bus(url, exchange, cell):
    config.parse_args(["nova", "--config-file", "/dev/null"], configure_db=False, init_rpc=False)
    oslo_messaging.TransportURL.parse(config.CONF, url)
    config.CONF.set_override("transport_url", url)
    objects.register_all()
    config.CONF.set_override("control_exchange", exchange)
    rpc.init(config.CONF)
    base.NovaObject.indirection_api = rpcapi.ConductorAPI()
    return cell


def start_database(api, cell):
    from nova.db.api import api as api_db
    from nova.db.main import api as main_db

    config.parse_args(["nova", "--config-file", "/dev/null"], configure_db=False, init_rpc=False)
    config.CONF.set_override("connection", api, group="api_database")
    config.CONF.set_override("connection", cell, group="database")
    oslo_messaging.TransportURL.parse(config.CONF, "fake://")
    config.CONF.set_override("transport_url", "fake://")
    api_db.configure(config.CONF)
    main_db.configure(config.CONF)
    objects.register_all()
    rpc.init(config.CONF)
    return cell


def say(step, value):
    print(json.dumps([step, value], sort_keys=True, default=str), flush=True)


def fields(obj):
    found = {}
    for name in sorted(obj.fields):
        if obj.obj_attr_is_set(name):
            value = getattr(obj, name)
            value = sorted(value) if isinstance(value, list) else value
            found[name] = fields(value) if isinstance(value, base.NovaObject) else value
            found[name] = value is not None if name in CHANGING else found[name]
    return [found, sorted(obj.obj_what_changed())]


def refused(call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except exception.NovaException as exc:
        return type(exc).__name__.removesuffix("_Remote")
    except Exception as exc:
        return type(exc).__name__.removesuffix("_Remote")
    return None


def aggregates(ctxt):
    one = objects.Aggregate(ctxt, name="racks", metadata={"ssd": "yes", "rack": "1"})
    one.create()
    say("aggregate", fields(one))
    say("created twice", refused(one.create))
    say("name twice", refused(objects.Aggregate(ctxt, name="racks").create))
    say("with hosts", refused(objects.Aggregate(ctxt, name="x", hosts=["h"]).create))
    one.add_host("h1")
    one.update_metadata({"rack": None, "ssd": "no", "new": "1", "never": None})
    say("changed", fields(one))
    say("host twice", refused(one.add_host, "h1"))
    say("no host", refused(one.delete_host, "h2"))
    one.name, one.metadata = "rows", {"only": "this"}
    one.save()
    say("saved", [one.name, sorted(one.obj_what_changed())])
    one = objects.Aggregate.get_by_id(ctxt, one.id)
    say("read", fields(one))
    one.delete_host("h1")
    say("without host", fields(one))
    one.destroy()
    say("gone", [refused(one.save), refused(one.destroy), refused(one.add_host, "h")])


def flavor(ctxt, **more):
    values = {"name": "small", "flavorid": "s1", "memory_mb": 64, "vcpus": 1, "root_gb": 1, "ephemeral_gb": 0}
    return objects.Flavor(ctxt, **{**values, "swap": 0, "disabled": False, "is_public": False, **more})


def flavors(ctxt):
    one = flavor(ctxt, extra_specs={"hw:a": "1", "hw:b": "2"}, projects=["p1"])
    one.create()
    say("flavor", fields(one))
    bare = flavor(ctxt, name="bare", flavorid="s0")
    bare.create()
    say("bare", fields(bare))
    say("id twice", refused(flavor(ctxt, name="other").create))
    say("flavor name twice", refused(flavor(ctxt, flavorid="s2").create))
    one.add_access("p2")
    one.remove_access("p1")
    say("access", fields(one))
    say("access refused", [refused(one.add_access, "p2"), refused(one.remove_access, "p9")])
    one.extra_specs = {"hw:a": "9", "hw:c": "3"}
    one.projects = ["p3"]
    one.save()
    say("flavor saved", fields(one))
    say("no spec", refused(one.save_extra_specs, {}, ["hw:none"]))
    found = objects.Flavor.get_by_flavor_id(ctxt, "s1")
    say("flavor read", [found.extra_specs, found.projects])
    stranger = context.RequestContext("u", "nobody")
    say("stranger", [refused(objects.Flavor.get_by_id, stranger, one.id), len(objects.FlavorList.get_all(stranger))])
    one.destroy()
    say("flavor gone", [fields(one), refused(one.destroy), refused(objects.Flavor(ctxt, flavorid="no").destroy)])


def key_pairs(ctxt):
    for name in ("a", "b", "c"):
        one = objects.KeyPair(ctxt, user_id="u", name=name, type="ssh", fingerprint="f", public_key="ssh-rsa x")
        one.create()
    say("key pair", fields(one))
    twice = objects.KeyPair(ctxt, user_id="u", name="a", type="ssh", fingerprint="f", public_key="x")
    say("key refused", [refused(one.create), refused(twice.create)])
    pages = objects.KeyPairList.get_by_user
    say("keys", [[k.name for k in pages(ctxt, "u", limit=1, marker="a")], refused(pages, ctxt, "u", marker="z")])
    say("local", refused(objects.KeyPair.get_by_name, ctxt, "u", "a", localonly=True))
    one.destroy()
    objects.KeyPair.destroy_by_name(ctxt, "u", "b")
    say("keys gone", [refused(one.destroy), objects.KeyPairList.get_count_by_user(ctxt, "u")])


def groups(ctxt):
    members = [uuidutils.generate_uuid(), uuidutils.generate_uuid()]
    one = objects.InstanceGroup(
        ctxt, name="apart", project_id="p", user_id="u", policy="anti-affinity", rules={"max_server_per_host": "3"}
    )
    one.create()
    say("group", fields(one))
    say("group refused", [refused(one.create), refused(same(ctxt, one).create)])
    one.name, one.members = "far", members
    one.save()
    say("group saved", [one.name, sorted(one.obj_what_changed())])
    one.hosts = ["h1"]
    say("hosts refused", refused(one.save))
    one.obj_reset_changes()
    stranger = context.RequestContext("u", "nobody")
    say("group of others", refused(objects.InstanceGroup.get_by_uuid, stranger, one.uuid))
    say("groups of others", len(objects.InstanceGroupList.get_all(stranger)))
    one.destroy()
    say("group gone", [refused(one.destroy), refused(objects.InstanceGroup.get_by_uuid, ctxt, one.uuid)])


def same(ctxt, group):
    return objects.InstanceGroup(ctxt, uuid=group.uuid, name="x", project_id="p", user_id="u")


def mappings(ctxt, url):
    values = {"transport_url": "fake://", "database_connection": url, "disabled": False}
    cells = [objects.CellMapping(ctxt, uuid=uuidutils.generate_uuid(), name=n, **values) for n in ("one", "two")]
    for cell in cells:
        cell.create()
    say("cell", fields(cells[0]))
    host = objects.HostMapping(ctxt, host="h1", cell_mapping=cells[0])
    host.create()
    say("host", fields(host))
    host.cell_mapping = cells[1]
    host.save()
    say("host saved", fields(host))
    say("host read", objects.HostMapping.get_by_host(ctxt, "h1").cell_mapping.name)
    host.destroy()
    cells[1].name, cells[1].disabled = "second", True
    cells[1].save()
    say("cell saved", fields(objects.CellMapping.get_by_uuid(ctxt, cells[1].uuid)))
    say("disabled", [c.name for c in objects.CellMappingList.get_by_disabled(ctxt, True)])
    cells[1].destroy()
    say("mappings gone", [refused(x) for m in (host, cells[1]) for x in (m.save, m.destroy)])


def build_request(ctxt, name, **more):
    values = {"project_id": "p", "user_id": "u", "vm_state": "building", "image_ref": "i1", "metadata": {}}
    server = objects.Instance(ctxt, uuid=uuidutils.generate_uuid(), display_name=name, **{**values, **more})
    server.security_groups = objects.SecurityGroupList(objects=[])
    server.tags = objects.TagList(objects=[])
    request = objects.BuildRequest(ctxt, instance_uuid=server.uuid, project_id=server.project_id, instance=server)
    request.block_device_mappings = objects.BlockDeviceMappingList(objects=[])
    request.tags = server.tags
    request.create()
    return request


FILTERS = [
    {},
    {"project_id": "p"},
    {"project_id": ["p", "q"], "image_ref": "i2"},
    {"uuid": []},
    {"display_name": "^web"},
    {"display_name": "1$", "user_id": "v"},
    {"metadata": {"a": "1"}},
    {"metadata": [{"a": "1"}, {"b": "3"}]},
    {"host": "h1"},
    {"changes-since": "2020-01-01", "deleted": False},
    {"deleted": True},
    {"cleaned": True},
    {"tags": ["t"]},
    {"not-tags": ["t"], "project_id": "q"},
]


def requests(ctxt):
    build_request(ctxt, "web-1", metadata={"a": "1", "b": "2"})
    second = build_request(ctxt, "web-2", image_ref="i2")
    build_request(ctxt, "db-1", project_id="q", user_id="v")
    get = objects.BuildRequestList.get_by_filters
    for asked in FILTERS:
        found = get(ctxt, dict(asked), sort_keys=["display_name"], sort_dirs=["asc"])
        say(f"requests {asked}", [r.instance.display_name for r in found])
    by_name = {"sort_keys": ["display_name"], "sort_dirs": ["asc"]}

    def page(**more):
        return [r.instance.display_name for r in get(ctxt, {}, **{**{k: list(v) for k, v in by_name.items()}, **more})]

    say(
        "page",
        [page(limit=2), page(limit=0), page(sort_keys=["project_id", "display_name"], sort_dirs=["desc", "asc"])],
    )
    say("behind", page(marker=second.instance_uuid))
    say("no marker", [refused(page, marker="none"), refused(page, marker="none", limit=0)])
    say("directions", [refused(page, sort_dirs=["asc", "asc"]), refused(page, sort_dirs=["up"])])
    user = context.RequestContext("v", "q")
    say("of the project", [r.instance.display_name for r in get(user, {})])


def limits(ctxt):
    user = context.RequestContext("u", "p")
    for kind in (objects.Quotas, objects.QuotasNoOp):
        project = kind.__name__
        kind.create_limit(user, project, "cores", 5)
        kind.create_limit(user, project, "cores", 3, user_id="u")
        say("limits twice", [refused(kind.create_limit, user, project, "cores", 5, user_id=u) for u in (None, "u")])
        kind.update_limit(user, project, "cores", 6)
        say("no limit", [refused(kind.update_limit, user, project, "ram", 6, user_id=u) for u in (None, "u")])
        say("fixed", [refused(kind.limit_check, user, project_id=project, cores=n) for n in (3, 4, -1)])
    say(
        "unknown", [refused(objects.Quotas.limit_check, user, pets=1), refused(objects.Quotas.count, user, "pets", "p")]
    )
    both = objects.Quotas.limit_check_project_and_user
    for of_project, of_user in ((6, 3), (7, 1), (6, 4), (4, None), (None, 4), (6, None), (None, None)):
        kwargs = {"project_values": {"cores": of_project} if of_project else None}
        kwargs["user_values"] = {"cores": of_user} if of_user else None
        say(f"both {of_project} {of_user}", refused(both, user, project_id="Quotas", user_id="u", **kwargs))
    count = objects.Quotas.count
    say("counted", [count(user, "cores", "p"), count(user, "key_pairs", "u"), count(user, "server_groups", "p")])
    say("dict", objects.Quotas.count_as_dict(user, "instances", "p", user_id="u"))
    group = objects.InstanceGroup(members=[uuidutils.generate_uuid()])
    say("members", count(user, "server_group_members", group, "u"))
    deltas = objects.Quotas.check_deltas
    say("deltas", [refused(deltas, user, {"key_pairs": n}, "u") for n in (99, 100)])
    say(
        "server deltas",
        [refused(deltas, user, {"instances": n, "cores": 1, "ram": 1}, "p", user_id="u") for n in (10, 11)],
    )
    kept = objects.Quotas(ctxt)
    kept.reserve(project_id="p", user_id="u", cores=1)
    kept.commit()
    kept.rollback()
    say("reserved", fields(kept))
    servers = objects.InstanceList
    say("groups of servers", [refused(servers.get_by_security_group_id, ctxt, 1)])


CELL = {"bus": start_bus, "database": start_database}[sys.argv[1]](*sys.argv[2:])
CONTEXT = context.get_admin_context()
aggregates(CONTEXT)
flavors(CONTEXT)
key_pairs(CONTEXT)
groups(CONTEXT)
mappings(CONTEXT, CELL)
limits(CONTEXT)
requests(CONTEXT)
say("end", None)
