"""Who this host is: the node's uuid, kept in the file `compute_id`.

The file is looked for beside the configuration files and in the state directory; all that are found must agree.
A new one is only ever written to the state directory, and only by a host that was never registered.
"""

from __future__ import annotations

import logging
import pathlib
import uuid
from collections.abc import Iterable

from kilonova.contract import exceptions

LOG = logging.getLogger(__name__)
FILE = "compute_id"


def read(directories: Iterable[pathlib.Path]) -> str | None:
    """The uuid, or None where no file is. Raises InvalidNodeConfiguration for unreadable or contradicting ones."""
    found: dict[pathlib.Path, str] = {}
    for directory in directories:
        path = directory / FILE
        try:
            found[path] = str(uuid.UUID(path.read_text()[:40].strip()))
        except FileNotFoundError:
            continue
        except (ValueError, OSError) as exc:
            raise exceptions.InvalidNodeConfiguration(reason=f"{path} holds no UUID ({exc})") from exc
    if len(set(found.values())) > 1:
        listing = ", ".join(f"{path}: {value}" for path, value in found.items())
        raise exceptions.InvalidNodeConfiguration(reason=f"the identity files contradict each other: {listing}")
    return next(iter(found.values()), None)


def write(directory: pathlib.Path, node_uuid: str) -> None:
    """Keep the uuid. Raises InvalidNodeConfiguration when there is a file already or it cannot be written."""
    path = directory / FILE
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with path.open("x") as file:
            file.write(node_uuid)
    except OSError as exc:
        raise exceptions.InvalidNodeConfiguration(reason=f"{path} cannot be written: {exc}") from exc
    LOG.info("wrote node identity %s to %s", node_uuid, path)


def beside(config_files: Iterable[str]) -> list[pathlib.Path]:
    """The directories of the configuration files."""
    return [pathlib.Path(file).parent for file in config_files]


def ensure(directories: Iterable[pathlib.Path], state_path: pathlib.Path) -> str:
    """The uuid from the files, else a new one."""
    known = read([*directories, state_path])
    if known is None:
        known = str(uuid.uuid4())
        write(state_path, known)
    return known
