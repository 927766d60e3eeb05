"""Options of graphical consoles over VNC."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "vnc"

OPTIONS: list[cfg.Opt] = [
    cfg.BoolOpt(
        "enabled",
        default=True,
        deprecated_name="vnc_enabled",
        deprecated_group="DEFAULT",
        help="Give guests a graphics card and a VNC server.",
    ),
    cfg.HostAddressOpt("server_listen", default="127.0.0.1", help="Address the guests' VNC servers listen on."),
]
