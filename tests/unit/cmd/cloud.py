"""A cloud's configuration file and databases, for operator commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kilonova.cmd import manage
from kilonova.db.api import cell_mappings, host_mappings
from kilonova.db.cell import compute_nodes
from kilonova.db.engine import Database


class Cloud:
    """A configuration file with its databases."""

    def __init__(self, folder: Path) -> None:
        self.conf = folder / "nova.conf"
        self.conf.write_text(
            "[DEFAULT]\ntransport_url = rabbit://u:secret@h/\n"
            f"[database]\nconnection = sqlite:///{folder}/cell.db\n"
            f"[api_database]\nconnection = sqlite:///{folder}/api.db\n"
        )
        self.api = Database(f"sqlite:///{folder}/api.db")
        self.cell = Database(f"sqlite:///{folder}/cell.db")
        self.folder = folder

    def run(self, *words: str) -> int:
        return manage.main(["--config-file", str(self.conf), *words])

    def node(self, host: str) -> None:
        values: dict[str, Any] = dict.fromkeys(
            ("vcpus", "memory_mb", "local_gb", "vcpus_used", "memory_mb_used", "local_gb_used", "hypervisor_version"), 1
        )
        values |= {"host": host, "hypervisor_hostname": host, "hypervisor_type": "fake", "cpu_info": "{}"}
        self.cell.run(compute_nodes.compute_node_create, values)

    def cells(self) -> dict[str, dict[str, Any]]:
        return {cell["name"]: cell for cell in self.api.query(cell_mappings.cell_mapping_list)}

    def hosts(self) -> dict[str, str]:
        return {m["host"]: m["cell_name"] for m in self.api.query(host_mappings.host_mapping_list)}

    def create_cell(self, name: str = "one") -> str:
        assert self.run("cell_v2", "create_cell", "--name", name, "--transport-url", "rabbit://x/") == 0
        return str(self.cells()[name]["uuid"])
