"""Cinder's API, scheduler and volume service in one process, over a message bus in memory.

python cinder_all.py --config-file cinder.conf
"""

from cinder import monkey_patch

monkey_patch.patch()

import sys  # noqa: E402

import cinder.privsep  # noqa: E402
import os_brick  # noqa: E402
from cinder import (  # noqa: E402
    coordination,  # noqa: F401  registers options
    objects,
    rpc,
    service,
    version,
)
from cinder.common import config  # noqa: E402
from oslo_config import cfg  # noqa: E402
from oslo_log import log  # noqa: E402
from oslo_service import service as oslo_service  # noqa: E402


def main() -> None:
    conf = cfg.CONF
    objects.register_all()
    conf(sys.argv[1:], project="cinder", version=version.version_string())
    log.setup(conf, "cinder")
    config.set_middleware_defaults()
    os_brick.setup(conf)
    # The process has the rights already: privileged functions run in it, no helper is spawned.
    cinder.privsep.sys_admin_pctxt.set_client_mode(False)
    rpc.init(conf)
    launcher = oslo_service.ServiceLauncher(conf, restart_method="mutate")
    launcher.launch_service(service.Service.create(binary="cinder-scheduler"))
    for backend in conf.enabled_backends:
        host = f"{conf.host}@{backend}"
        launcher.launch_service(
            service.Service.create(host=host, service_name=backend, binary="cinder-volume", coordination=True)
        )
    launcher.launch_service(service.WSGIService("osapi_volume"))
    launcher.wait()


if __name__ == "__main__":
    main()
