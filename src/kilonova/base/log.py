"""Logging by oslo.log's options, with the request id of the thread's present context on every line.

A message is one line, whatever texts of users are in it: control characters are written as escapes, so that nobody can
make up a line or speak to the terminal of who reads it.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Final

from oslo_log import formatters
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
    # A line for each request that waits for a thread.
    "waitress.queue=ERROR",
)

_CONTROLS: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")
_CONTROLS_IN_TRACEBACKS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def escaped(text: str, what: re.Pattern[str] = _CONTROLS) -> str:
    """The text with control characters as Python writes them."""
    return what.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class Record(logging.LogRecord):
    """A log record whose message is one line."""

    def getMessage(self) -> str:  # noqa: N802 - logging's name
        return escaped(super().getMessage())


class _Escaping(logging.Formatter):
    """A formatter around oslo.log's: tracebacks alone have lines, whose beginnings are that one's.

    `asked`: the format has a place for the exception that is being handled.
    """

    def __init__(self, inner: logging.Formatter, asked: bool) -> None:
        super().__init__()
        self._inner, self._asked = inner, asked

    def format(self, record: logging.LogRecord) -> str:
        text = self._inner.format(record)
        traceback = f"\n{record.exc_text}" if record.exc_text else ""
        if not traceback:
            return escaped(text if self._asked else _once(text, record))
        if traceback not in text:
            return escaped(text)
        head, _, rest = text.partition(traceback)
        return escaped(head) + escaped(traceback + rest, _CONTROLS_IN_TRACEBACKS)


def _once(text: str, record: logging.LogRecord) -> str:
    """Without the exception that is being handled, which oslo.log puts at the end, where the message has its words."""
    added = str(getattr(record, "error_summary", ""))
    _, _, words = added.partition(": ")
    return text.removesuffix(f": {added}") if words and escaped(words) in record.getMessage() else text


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
    logging.setLogRecordFactory(Record)
    oslo_log.setup(conf, product)
    formats = (conf.logging_context_format_string, conf.logging_default_format_string)
    asked = any("%(error_summary)s" in one for one in formats)
    for handler in logging.getLogger().handlers:
        if type(handler.formatter) is formatters.ContextFormatter:
            handler.setFormatter(_Escaping(handler.formatter, asked))


def trace(error: BaseException) -> BaseException | None:
    """What a log line about an error takes as `exc_info`: nothing of an ordinary refusal (no valid host, a quota).

    Its words say all.
    """
    return None if getattr(error, "ordinary", False) else error


def failed(logger: logging.Logger, what: str, error: BaseException, *, foreseen: bool) -> None:
    """One line about a failure that was foreseen (something is away for now); a traceback for any other one."""
    level = logging.WARNING if foreseen else logging.ERROR
    logger.log(level, "%s: %s", what, error, exc_info=None if foreseen else error)


def get(name: str) -> logging.LoggerAdapter[logging.Logger]:
    """A logger whose lines carry the context's request id."""
    return oslo_log.getLogger(name)
