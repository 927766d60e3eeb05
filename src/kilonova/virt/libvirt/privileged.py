"""The few things that need root. An agent that runs as root does them itself, any other through a privsep daemon."""

from __future__ import annotations

import os
from pathlib import Path

from oslo_config import cfg
from oslo_privsep import capabilities, priv_context

context = priv_context.PrivContext(
    "kilonova",
    cfg_section="nova_sys_admin",
    pypath=__name__ + ".context",
    capabilities=[
        capabilities.CAP_CHOWN,
        capabilities.CAP_DAC_OVERRIDE,
        capabilities.CAP_DAC_READ_SEARCH,
        capabilities.CAP_FOWNER,
        capabilities.CAP_NET_ADMIN,
        capabilities.CAP_SYS_ADMIN,
    ],
)
"""Its helper is configured as [nova_sys_admin] helper_command."""


def prepare(conf: cfg.ConfigOpts) -> None:
    """Tell the libraries that read the global configuration (privsep, os-vif, os-brick) about our files; as root,
    switch their daemons off."""
    if conf is not cfg.CONF:
        cfg.CONF(
            [],
            project="nova",
            default_config_files=list(conf.config_file or ()),
            default_config_dirs=list(conf.config_dir or ()),
        )
    if os.geteuid() == 0:
        _without_daemons()


def _without_daemons() -> None:
    from os_brick.privileged import default as brick
    from vif_plug_ovs import privsep as ovs

    for each in (context, brick, ovs.vif_plug):
        each.set_client_mode(False)


def read_end(path: Path, count: int) -> bytes:
    """The last `count` bytes of a file. Raises FileNotFoundError, PermissionError."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - count))
        return file.read(count)


@context.entrypoint
def last_bytes(path: str, count: int) -> bytes:
    """`read_end` of a file that only root may read."""
    return read_end(Path(path), count)
