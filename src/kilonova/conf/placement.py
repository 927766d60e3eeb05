"""[placement]: the Placement service, reached with the service's own credentials."""

from __future__ import annotations

from oslo_config import cfg

from kilonova.conf import _keystoneauth

GROUP: str | None = "placement"
OPTIONS: list[cfg.Opt] = _keystoneauth.session() + _keystoneauth.auth() + _keystoneauth.adapter("placement")
