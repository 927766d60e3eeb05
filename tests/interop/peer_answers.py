"""Run by the peer's Python: its compute API in this process, asked by lines of JSON.

peer_answers.py CONF PASTE      reads [method, path, headers, body], prints "ANSWER " and [status, headers, document]

Keystone is left out: who calls stands in the token, `user:project`, and `admin` is the administrator.
"""

import os
import sys

os.environ["OS_NOVA_DISABLE_EVENTLET_PATCHING"] = "true"

from nova import monkey_patch

monkey_patch.patch(backend="threading")

import json  # noqa: E402

from nova import config, objects  # noqa: E402
from oslo_log import log  # noqa: E402
from paste import deploy  # noqa: E402
from wsgi_ask import ask  # noqa: E402


def identity(headers):
    """What Keystone's middleware would add to a request."""
    token = headers.get("X-Auth-Token")
    if not token:
        return {}
    user, _, project = token.partition(":")
    roles = "admin,manager,member,reader" if user == "admin" else "member,reader"
    return {"X-User-Id": user, "X-Project-Id": project, "X-Roles": roles, "X-Service-Catalog": "[]"}


def main(conf, paste):
    objects.register_all()
    config.parse_args(["peer", "--config-file", conf])
    log.setup(config.CONF, "nova")
    app = deploy.loadapp(f"config:{paste}", name="osapi_compute")
    print("READY", flush=True)
    for line in sys.stdin:
        method, path, headers, body = json.loads(line)
        answer = ask(app, method, path, headers | identity(headers), body)
        print("ANSWER " + json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
