"""[service_user]: the token that accompanies a user's token, so that long work outlives its expiry."""

from __future__ import annotations

from oslo_config import cfg

from kilonova.conf import _keystoneauth

GROUP: str | None = "service_user"
OPTIONS: list[cfg.Opt] = [
    cfg.BoolOpt(
        "send_service_user_token",
        default=False,
        help="Send a service token beside the user's token to the other services.",
    ),
    *_keystoneauth.session(),
    *_keystoneauth.auth(),
]
