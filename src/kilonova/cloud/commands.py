"""Running one command to its end, with its output kept in a log."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kilonova.cloud.errors import CloudError
from kilonova.cloud.site import LOOPBACK, cache_root, open_private

LEAKS = frozenset({"PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV"})
PRIVATE = 0o077
"""The umask of what we run: databases, disks and logs are for their owner alone."""
PUBLIC = 0o022
"""The umask of what is no cloud's: packages of the machine, names of namespaces."""
TOOLS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The caller's environment without what would leak into a service: credentials and Python settings.

    What Python compiles is kept in the cache, for all services alike: a start that compiles everything anew takes
    several times as long.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OS_", "PYTEST_")) and name not in LEAKS
    }
    kept.setdefault("PYTHONPYCACHEPREFIX", str(cache_root() / "bytecode"))
    for name in ("no_proxy", "NO_PROXY"):
        # A proxy is for the world outside: services speak with each other directly.
        kept[name] = ",".join(filter(None, (kept.get(name), LOOPBACK, "localhost")))
    kept["PATH"] = f"{kept.get('PATH', '')}:{TOOLS}"
    return kept | dict(extra or {})


def run(
    argv: Sequence[object],
    log: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 600,
    check: bool = True,
    cwd: Path | None = None,
    said: str | None = None,
    umask: int = PRIVATE,
) -> str:
    """Run a command; its output is returned and, with `log`, appended there. A failure raises `CloudError`.

    Everybody can read its arguments while it runs, and they are logged: what is secret goes in by `said`, its standard
    input, by `env` or by a file.
    """
    words = [str(word) for word in argv]
    try:
        done = subprocess.run(
            words,
            env=environment(env),
            input=said or "",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            umask=umask,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
            cwd=cwd,
        )
    except FileNotFoundError as error:
        raise CloudError(f"{words[0]} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise CloudError(f"`{' '.join(words[:4])} ...` did not end within {timeout:.0f} s", log) from error
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
        with open_private(log) as file:
            file.write(f"$ {' '.join(words)}\n{done.stdout}\n".encode(errors="replace"))
    if check and done.returncode:
        last = "\n".join(done.stdout.strip().splitlines()[-6:])
        raise CloudError(f"`{' '.join(words[:6])}` ended with {done.returncode}:\n{last}", log)
    return done.stdout


def ok(argv: Sequence[object], **options: Any) -> bool:
    """Whether a command ends well."""
    try:
        run(argv, **options)
    except CloudError:
        return False
    return True


def run_each(python: Path, entry: str, shared: Sequence[object], *commands: Sequence[object]) -> list[object]:
    """Words that run several commands of one program, imported once; `entry` is its `module:function`."""
    words: list[object] = [python, Path(__file__).parent / "foreign" / "run_each.py", entry, *shared]
    for command in commands:
        words += ["--", *command]
    return words
