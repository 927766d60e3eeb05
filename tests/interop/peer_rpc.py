"""Run by the peer's interpreter: `call` asks our host as the peer's services do, `serve` is a host of the peer's."""

import json
import sys
import time
import warnings

warnings.simplefilter("ignore")

import oslo_messaging  # noqa: E402
from nova import config, context, exception, objects, rpc  # noqa: E402
from nova.objects import base  # noqa: E402

SLOW = 6
"""Seconds: longer than the other side is silent without being given up (PATIENCE)."""
PATIENCE = 2
UUID = "5f2b1d7e-1f4e-4a3c-8a57-0d3f1f1b2c3d"


class Host:
    target = oslo_messaging.Target(version="6.5")

    def get_console_output(self, context, instance, tail_length):
        if tail_length < 0:
            raise exception.InstanceNotFound(instance_id=instance.uuid)
        instance.metadata["seen"] = "peer"
        return instance

    def reserve_block_device_name(self, context, instance, device, **more):
        time.sleep(SLOW)
        return device

    def stop_instance(self, context, instance, clean_shutdown):
        print(json.dumps([context.user_id, context.request_id, instance.uuid, clean_shutdown]), flush=True)


def start(url, exchange):
    config.parse_args(["nova", "--config-file", "/dev/null"], configure_db=False, init_rpc=False)
    oslo_messaging.TransportURL.parse(config.CONF, url)
    config.CONF.set_override("transport_url", url)
    objects.register_all()
    config.CONF.set_override("control_exchange", exchange)
    config.CONF.set_override("long_rpc_timeout", 60)
    rpc.init(config.CONF)


def serve():
    server = rpc.get_server(
        oslo_messaging.Target(topic="compute", server="peer-host"), [Host()], base.NovaObjectSerializer()
    )
    server.start()
    print("ready", flush=True)
    sys.stdin.readline()
    server.stop()


def call():
    from nova.compute import rpcapi

    ctxt = context.RequestContext("peer-user", "peer-project", is_admin=False, roles=["member"])
    api = rpcapi.ComputeAPI()
    instance = objects.Instance(uuid=UUID, host="our-host", metadata={})
    answers = {"output": api.get_console_output(ctxt, instance, 5)}
    try:
        api.get_console_output(ctxt, instance, -1)
    except Exception as exc:
        answers["error"] = [type(exc).__name__, isinstance(exc, exception.ConsoleNotAvailable), exc.format_message()]
    api.stop_instance(ctxt, instance, do_cast=True)
    config.CONF.set_override("rpc_response_timeout", PATIENCE)
    answers["slow"] = api.reserve_block_device_name(ctxt, instance, "/dev/vdb", None, None, None, None, False)
    print(json.dumps(answers), flush=True)


start(sys.argv[2], sys.argv[3])
{"serve": serve, "call": call}[sys.argv[1]]()
