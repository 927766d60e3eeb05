"""Logging by oslo.log's options, with the request id of the thread's present context on every line."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from oslo_log import log as oslo_log

if TYPE_CHECKING:
    from oslo_config import cfg

_QUIET = (
    "oslo.messaging=INFO",
    "oslo_messaging=INFO",
    "amqp=WARN",
    "amqplib=WARN",
    "kombu=WARN",
    "sqlalchemy=WARN",
    "alembic=WARN",
    "urllib3.connectionpool=WARN",
    "keystoneauth=WARN",
    "keystoneauth.session=WARN",
    "keystonemiddleware=WARN",
    "oslo_policy=INFO",
    "dogpile=INFO",
    "stevedore=WARN",
)


def register(conf: cfg.ConfigOpts) -> None:
    """Register oslo.log's options (log_file, debug, use_json ...) on `conf`; before its command line is parsed."""
    oslo_log.register_options(conf)
    oslo_log.set_defaults(default_log_levels=list(_QUIET))


def setup(conf: cfg.ConfigOpts, product: str = "nova", *, command: bool = False) -> None:
    """Apply the options; once per process.

    `command`: of a program whose output is the answer; where no file is configured, lines go to standard error.
    """
    if command and not (conf.log_file or conf.log_dir):
        conf.set_default("use_stderr", True)
    oslo_log.setup(conf, product)


def get(name: str) -> logging.LoggerAdapter[logging.Logger]:
    """A logger whose lines carry the context's request id."""
    return oslo_log.getLogger(name)
