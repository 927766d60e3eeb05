"""What all wire objects share: names on the wire, defaults, sending to older receivers, no I/O.

A class declares as data

- `VERSION` and `fields`;
- `REMOVED`: field -> newest version (of a receiver) that does not know the field;
- `LIMITS`: field -> value -> newest version that does not know the value (and what is sent instead, if anything);
- `METHODS` and `CLASS_METHODS`: the remote methods under which the object service acts on it, with their arguments.
  They are part of the object's contract (its fingerprint), and are carried out by whoever has a database.

Source: oslo.versionedobjects; Nova's object versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import msgspec
from oslo_versionedobjects import base as ovo
from oslo_versionedobjects import exception as ovo_exceptions
from oslo_versionedobjects import fields as ovo_fields

from kilonova.contract import exceptions
from kilonova.contract.objects import types as t

C = TypeVar("C", bound="type[WireObject]")

IncompatibleObjectVersion = ovo_exceptions.IncompatibleObjectVersion
UnsupportedObjectError = ovo_exceptions.UnsupportedObjectError
DictCompat = ovo.VersionedObjectDictCompat


def register(cls: C) -> C:
    """Make the fields of a class properties and its name known to deserialization."""
    ovo.VersionedObjectRegistry.register(cls)
    return cls


def version_tuple(text: str) -> tuple[int, ...]:
    """`"1.10"` as `(1, 10)`, so that versions compare as numbers."""
    return tuple(int(part) for part in text.split("."))


class Limit(msgspec.Struct, frozen=True):
    """A value that receivers up to a version do not know; `instead` is sent to them, without it sending is refused."""

    up_to: str
    instead: str | None = None


_by_version: dict[tuple[str, str], Any] = {}
_with_objects: dict[str, tuple[str, ...]] = {}


def _object_fields(cls: Any, kind: str) -> tuple[str, ...]:
    """Fields whose value is one object."""
    found = _with_objects.get(kind)
    if found is None:
        names = (name for name, field in cls.fields.items() if isinstance(field, ovo_fields.ObjectField))
        found = _with_objects[kind] = tuple(names)
    return found


class WireObject(ovo.VersionedObject):
    """A versioned object of the compute services. Reading an unset field raises; nothing is loaded in secret."""

    OBJ_SERIAL_NAMESPACE = "nova_object"
    OBJ_PROJECT_NAMESPACE = "nova"

    REMOVED: ClassVar[Mapping[str, str]] = {}
    LIMITS: ClassVar[Mapping[str, Mapping[str, Limit]]] = {}
    METHODS: ClassVar[Mapping[str, str]] = {}
    CLASS_METHODS: ClassVar[Mapping[str, str]] = {}

    if TYPE_CHECKING:
        fields: Any

        def __getattr__(self, name: str) -> Any: ...

        def __setattr__(self, name: str, value: Any) -> None: ...

    def obj_load_attr(self, attrname: str) -> None:
        """Called when an unset field is read. Raises ObjectActionError: objects are data."""
        raise exceptions.ObjectActionError(action="obj_load_attr", reason=f"{self.obj_name()}.{attrname} is not set")

    @classmethod
    def obj_class_from_name(cls, objname: str, objver: str) -> type[WireObject]:
        """The class of that name and version, loading its module when needed. Raises IncompatibleObjectVersion."""
        found: Any = _by_version.get((objname, objver))
        if found is None:
            from kilonova.contract import objects

            objects.load(objname)
            found = _by_version[objname, objver] = super().obj_class_from_name(objname, objver)
        return found

    # The next two say what oslo.versionedobjects says, at a fifth of the cost: an object that crosses the bus is asked
    # for every field it has, at every level.

    def obj_attr_is_set(self, attrname: str) -> bool:
        """Whether the field has a value. Raises AttributeError when there is no such field."""
        if attrname not in self.fields and attrname not in self.obj_extra_fields:
            raise AttributeError(f"{self.obj_name()} object has no attribute '{attrname}'")
        return "_obj_" + attrname in self.__dict__

    def obj_what_changed(self) -> set[str]:
        """Fields that were set, and objects in fields that changed themselves, since the last reset."""
        changed = {name for name in self._changed_fields if name in self.fields}
        values = self.__dict__
        for name in _object_fields(type(self), self.obj_name()):
            child = values.get("_obj_" + name)
            if child is not None and name not in changed and child.obj_what_changed():
                changed.add(name)
        return changed

    def obj_make_compatible(self, primitive: dict[str, Any], target_version: str) -> None:
        """Change a primitive of this object to what a receiver of `target_version` understands.

        Raises ObjectActionError when a value cannot be said in that version.
        """
        super().obj_make_compatible(primitive, target_version)
        target = version_tuple(target_version)
        for field, limits in self.LIMITS.items():
            _limit(primitive, field, limits, target)
        for field, version in self.REMOVED.items():
            if field in primitive and target <= version_tuple(version):
                del primitive[field]

    def get(self, key: str, default: Any = None) -> Any:
        """The field's value, or the default when it is not set."""
        return getattr(self, key) if key in self else default


def _limit(primitive: dict[str, Any], field: str, limits: Mapping[str, Limit], target: tuple[int, ...]) -> None:
    value = primitive.get(field)
    limit = limits.get(value) if isinstance(value, str) else None
    if limit is None or target > version_tuple(limit.up_to):
        return
    if limit.instead is None:
        version = ".".join(map(str, target))
        reason = f"{field}={value} is not known in version {version}"
        raise exceptions.ObjectActionError(action="obj_make_compatible", reason=reason)
    primitive[field] = limit.instead


class Persistent:
    """Adds the times and the soft-delete mark of a row."""

    fields: Any = {
        "created_at": t.DateTime(nullable=True),
        "updated_at": t.DateTime(nullable=True),
        "deleted_at": t.DateTime(nullable=True),
        "deleted": t.Boolean(default=False),
    }


class Timestamped:
    """Adds the times of a row that is deleted for good."""

    fields: Any = {
        "created_at": t.DateTime(nullable=True),
        "updated_at": t.DateTime(nullable=True),
    }


class Ephemeral(WireObject):
    """An object that is no row: fields with a default have it from the start."""

    def __init__(self, context: Any = None, **kwargs: Any) -> None:
        super().__init__(context=context, **kwargs)
        self.obj_set_defaults()


class Tracked(WireObject):
    """An object whose dicts in `TRACKED` count as changed when their contents are."""

    TRACKED: ClassVar[tuple[str, ...]] = ()

    def __init__(self, context: Any = None, **kwargs: Any) -> None:
        self._known: dict[str, Any] = {}
        super().__init__(context=context, **kwargs)
        self._remember()

    def _remember(self, names: Iterable[str] | None = None) -> None:
        for name in self.TRACKED:
            if (names is None or name in names) and name in self:
                # A plain dict: the field's own keeps a reference to this object.
                self._known[name] = dict(getattr(self, name))

    def obj_what_changed(self) -> set[str]:
        """Fields that were set, or whose contents changed, since the last reset."""
        changed: set[str] = super().obj_what_changed()
        return changed | {n for n in self.TRACKED if n in self and getattr(self, n) != self._known.get(n)}

    def obj_reset_changes(self, fields: Any = None, recursive: bool = False) -> None:
        """Count the fields (all, when none is named) as unchanged from here on."""
        super().obj_reset_changes(fields, recursive=recursive)
        self._remember(fields)

    @classmethod
    def _obj_from_primitive(cls, context: Any, objver: str, primitive: dict[str, Any]) -> Any:
        made = super()._obj_from_primitive(context, objver, primitive)
        made._remember()
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        twin = super().__deepcopy__(memo)
        twin._known = {name: dict(value) for name, value in self._known.items()}
        return twin


class WireList(ovo.ObjectListBase, WireObject):
    """A list on the wire; `.objects` are its members."""

    fields: Any = {}

    @classmethod
    def _obj_primitive_key(cls, field: str) -> str:
        return f"{cls.OBJ_SERIAL_NAMESPACE}.{field}"

    @classmethod
    def _obj_primitive_field(cls, primitive: Mapping[str, Any], field: str, default: Any = ...) -> Any:
        key = cls._obj_primitive_key(field)
        return primitive[key] if default is ... or default is t.UNSPECIFIED else primitive.get(key, default)


def manifest(name: str) -> dict[str, str]:
    """Versions of the object and of everything it may contain, as a receiver states what it understands."""
    from kilonova.contract import objects

    versions: dict[str, str] = {}
    pending = [name]
    while pending:
        current = pending.pop()
        if current in versions:
            continue
        cls = objects.load(current)
        versions[current] = cls.VERSION
        for field in cls.fields.values():
            pending.extend(t.object_names(field))
    return versions


def apply_updates(obj: WireObject, updates: Mapping[str, Any]) -> None:
    """Take over what a remote method changed: field -> value, and `obj_what_changed` that remains to be saved."""
    for name, value in updates.items():
        if name in obj.fields:
            ready = (
                value if isinstance(value, ovo.VersionedObject) else obj.fields[name].from_primitive(obj, name, value)
            )
            setattr(obj, name, ready)
    obj.obj_reset_changes()
    obj._changed_fields = set(updates.get("obj_what_changed", ()))


def made(obj: Any, values: Mapping[str, Any], names: Iterable[str] | None = None) -> Any:
    """Set fields from a mapping and mark none of them changed; for objects that mirror a row."""
    for name in names if names is not None else values:
        setattr(obj, name, values[name])
    obj.obj_reset_changes()
    return obj
