"""ML2 mechanism driver for a cloud without agents: every port is bound on every host, and ACTIVE at once.

There is no data path. Neutron tells the compute service `network-vif-plugged` as it would after a real agent has wired
the port. Hosts named in `[kilonova] fail_hosts` refuse, so that a failed binding can be tested.
"""

from __future__ import annotations

from typing import Any

from neutron_lib import constants
from neutron_lib.api.definitions import portbindings
from neutron_lib.callbacks import events, registry, resources
from neutron_lib.plugins import constants as plugin_constants
from neutron_lib.plugins import directory
from neutron_lib.plugins.ml2 import api
from oslo_config import cfg

cfg.CONF.register_opts(
    [cfg.StrOpt("bridge", default="br-int"), cfg.ListOpt("fail_hosts", default=[])],
    "kilonova",
)


class BindAll(api.MechanismDriver):
    def initialize(self) -> None:
        self.details = {
            portbindings.CAP_PORT_FILTER: True,
            portbindings.OVS_HYBRID_PLUG: False,
            "connectivity": self.connectivity,
            "bridge_name": cfg.CONF.kilonova.bridge,
            "datapath_type": "system",
        }
        for moment in (events.AFTER_CREATE, events.AFTER_UPDATE):
            registry.subscribe(self.floating_ip_changed, resources.FLOATING_IP, moment)

    @property
    def connectivity(self) -> str:
        return str(portbindings.CONNECTIVITY_L2)

    def floating_ip_changed(self, resource: str, event: str, trigger: Any, payload: Any = None) -> None:
        """No router agent reports either: an associated floating IP is ACTIVE at once."""
        floating = payload.latest_state
        active = constants.FLOATINGIP_STATUS_ACTIVE if floating.get("port_id") else constants.FLOATINGIP_STATUS_DOWN
        routers = directory.get_plugin(plugin_constants.L3)
        routers.update_floatingip_status(payload.context.elevated(), floating["id"], active)

    def bind_port(self, context: Any) -> None:
        if context.host in cfg.CONF.kilonova.fail_hosts or not context.segments_to_bind:
            return
        segment = context.segments_to_bind[0]
        vnic = context.current.get(portbindings.VNIC_TYPE, portbindings.VNIC_NORMAL)
        if vnic == portbindings.VNIC_NORMAL:
            kind, details = portbindings.VIF_TYPE_OVS, dict(self.details)
        else:
            kind = portbindings.VIF_TYPE_HW_VEB
            details = {portbindings.CAP_PORT_FILTER: False, "vlan": str(segment.get(api.SEGMENTATION_ID) or 0)}
        context.set_binding(segment[api.ID], kind, details, status=constants.PORT_STATUS_ACTIVE)
