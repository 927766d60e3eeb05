"""Numbers behind EC2 style ids, which the metadata service still shows."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from kilonova.contract import exceptions, objects
from kilonova.db.cell.tables import INSTANCE_ID_MAPPINGS, S3_IMAGES
from kilonova.db.objects import hydrate


def _read(tx: sa.Connection, kind: Any, table: sa.Table, condition: sa.ColumnElement[bool]) -> Any:
    row = tx.execute(hydrate.select_alive(table, condition)).mappings().first()
    return None if row is None else hydrate.fill(kind(), row)


def number(tx: sa.Connection, table: sa.Table, uuid: str) -> int:
    """The number of a UUID; it gets one when it has none yet."""
    known = tx.execute(sa.select(table.c.id).where(table.c.uuid == uuid, table.c.deleted == 0)).scalar()
    return int(known if known is not None else hydrate.insert(tx, table, {"uuid": uuid})["id"])


def ids_of(tx: sa.Connection, ctxt: Any, instance: objects.Instance) -> objects.EC2Ids:
    """Ids of the server, its image, kernel and ramdisk."""

    def image(uuid: str | None, prefix: str) -> str | None:
        return f"{prefix}-{number(tx, S3_IMAGES, uuid):08x}" if uuid else None

    return objects.EC2Ids(
        instance_id=f"i-{number(tx, INSTANCE_ID_MAPPINGS, instance.uuid):08x}",
        ami_id=image(instance.get("image_ref"), "ami"),
        kernel_id=image(instance.get("kernel_id"), "aki"),
        ramdisk_id=image(instance.get("ramdisk_id"), "ari"),
    )


def create_instance_mapping(tx: sa.Connection, ctxt: Any, mapping: objects.EC2InstanceMapping) -> None:
    """Raises ObjectActionError when it has a number already."""
    _create(tx, mapping, INSTANCE_ID_MAPPINGS)


def create_image_mapping(tx: sa.Connection, ctxt: Any, mapping: objects.S3ImageMapping) -> None:
    """Raises ObjectActionError when it has a number already."""
    _create(tx, mapping, S3_IMAGES)


def _create(tx: sa.Connection, mapping: Any, table: sa.Table) -> None:
    if mapping.obj_attr_is_set("id"):
        raise exceptions.ObjectActionError(action="create", reason="already created")
    hydrate.fill(mapping, hydrate.insert(tx, table, {"uuid": mapping.uuid}))


def instance_mapping_by_uuid(tx: sa.Connection, ctxt: Any, instance_uuid: str) -> objects.EC2InstanceMapping | None:
    return _read(tx, objects.EC2InstanceMapping, INSTANCE_ID_MAPPINGS, INSTANCE_ID_MAPPINGS.c.uuid == instance_uuid)


def instance_mapping_by_id(tx: sa.Connection, ctxt: Any, ec2_id: int) -> objects.EC2InstanceMapping | None:
    return _read(tx, objects.EC2InstanceMapping, INSTANCE_ID_MAPPINGS, INSTANCE_ID_MAPPINGS.c.id == ec2_id)


def image_mapping_by_uuid(tx: sa.Connection, ctxt: Any, s3_image_uuid: str) -> objects.S3ImageMapping | None:
    return _read(tx, objects.S3ImageMapping, S3_IMAGES, S3_IMAGES.c.uuid == s3_image_uuid)


def image_mapping_by_id(tx: sa.Connection, ctxt: Any, s3_id: int) -> objects.S3ImageMapping | None:
    return _read(tx, objects.S3ImageMapping, S3_IMAGES, S3_IMAGES.c.id == s3_id)
