"""Make Neutron's tables in an SQLite file: `python neutron_tables.py URL`.

Neutron's migrations alter constraints, which SQLite cannot, so the tables come from the models; the caller stamps the
head revisions. What the migrations insert as data besides are the default security group rules.
"""

from __future__ import annotations

import sys
import uuid

import sqlalchemy
from neutron.db.migration.models import head


def main(url: str) -> None:
    engine = sqlalchemy.create_engine(url)
    tables = head.get_metadata()
    tables.create_all(engine)
    rules = tables.tables["securitygroupdefaultrules"]
    attributes = tables.tables["standardattributes"]
    with engine.begin() as tx:
        if tx.execute(sqlalchemy.select(sqlalchemy.func.count()).select_from(rules)).scalar():
            return
        for direction in ("egress", "ingress"):
            for family in ("IPv4", "IPv6"):
                made = tx.execute(
                    attributes.insert().values(
                        resource_type="securitygroupdefaultrules", description=f"{direction} {family}"
                    )
                )
                tx.execute(
                    rules.insert().values(
                        id=str(uuid.uuid4()),
                        standard_attr_id=next(iter(made.inserted_primary_key or ())),
                        direction=direction,
                        ethertype=family,
                        remote_group_id="PARENT" if direction == "ingress" else None,
                        used_in_default_sg=True,
                        used_in_non_default_sg=direction == "egress",
                    )
                )


if __name__ == "__main__":
    main(sys.argv[1])
