"""Run by the peer's interpreter: reads objects as JSON lines, answers each as the peer would send it on."""

import json
import sys
import warnings

warnings.simplefilter("ignore")

from nova import objects  # noqa: E402
from nova.objects import base  # noqa: E402

objects.register_all()
for line in sys.stdin:
    request = json.loads(line)
    try:
        found = base.NovaObject.obj_from_primitive(request["object"])
        versions = request.get("versions")
        target = versions and versions[found.obj_name()]
        answer = found.obj_to_primitive(target_version=target, version_manifest=versions)
    except Exception as exc:
        answer = {"error": type(exc).__name__}
    print(json.dumps(answer), flush=True)
