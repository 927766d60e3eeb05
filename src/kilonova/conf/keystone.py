"""[keystone]: the identity service, asked whether a project exists and for unified limits."""

from __future__ import annotations

from oslo_config import cfg

from kilonova.conf import _keystoneauth

GROUP: str | None = "keystone"
OPTIONS: list[cfg.Opt] = _keystoneauth.session() + _keystoneauth.auth() + _keystoneauth.adapter("identity")
