"""Field types of wire objects, under short names: `t.String(nullable=True)`, `t.Choice(DiskBus)` ..."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, ClassVar

from oslo_versionedobjects import fields as ovo

UNSPECIFIED: Any = ovo.UnspecifiedDefault

Boolean: Any = ovo.BooleanField
DateTime: Any = ovo.DateTimeField
DictOfIntegers: Any = ovo.DictOfIntegersField
DictOfListOfStrings: Any = ovo.DictOfListOfStringsField
DictOfNullableStrings: Any = ovo.DictOfNullableStringsField
DictOfSetOfIntegers: Any = ovo.DictOfSetOfIntegersField
DictOfStrings: Any = ovo.DictOfStringsField
Enum: Any = ovo.EnumField
FlexibleBoolean: Any = ovo.FlexibleBooleanField
Float: Any = ovo.FloatField
IPAddress: Any = ovo.IPAddressField
IPV4Address: Any = ovo.IPV4AddressField
IPV6Address: Any = ovo.IPV6AddressField
IPV4AndV6Address: Any = ovo.IPV4AndV6AddressField
Integer: Any = ovo.IntegerField
ListOfDictOfNullableStrings: Any = ovo.ListOfDictOfNullableStringsField
ListOfIntegers: Any = ovo.ListOfIntegersField
ListOfListsOfStrings: Any = ovo.ListOfListsOfStringsField
ListOfSetsOfIntegers: Any = ovo.ListOfSetsOfIntegersField
ListOfStrings: Any = ovo.ListOfStringsField
ListOfUUID: Any = ovo.ListOfUUIDField
MACAddress: Any = ovo.MACAddressField
Object: Any = ovo.ObjectField
Objects: Any = ovo.ListOfObjectsField
PCIAddress: Any = ovo.PCIAddressField
SensitiveString: Any = ovo.SensitiveStringField
SetOfIntegers: Any = ovo.SetOfIntegersField
SetOfStrings: Any = ovo.SetOfStringsField
String: Any = ovo.StringField
UUID: Any = ovo.UUIDField
VersionPredicate: Any = ovo.VersionPredicateField


class ChoiceType(ovo.Enum):
    """A closed set of strings: the class's constants, in the order in which they are written."""

    ALL: ClassVar[tuple[str, ...]] = ()
    ALIASES: ClassVar[dict[str, str]] = {}
    """Other spellings that are accepted, in lower case."""

    LOWER: ClassVar[bool] = False
    """Whether values are accepted in any case."""

    def __init_subclass__(cls) -> None:
        if "ALL" not in vars(cls):
            cls.ALL = tuple(v for k, v in vars(cls).items() if k.isupper() and isinstance(v, str))

    def __init__(self) -> None:
        super().__init__(valid_values=self.ALL)

    @classmethod
    def canonical(cls, value: Any) -> Any:
        """The value as the set spells it; whatever it does not know comes back as it is."""
        if not isinstance(value, str):
            return value
        value = value.lower() if cls.LOWER else value
        return cls.ALIASES.get(value.lower(), value)

    def coerce(self, obj: Any, attr: str, value: Any) -> Any:
        """The canonical value. Raises ValueError when it is none of the set."""
        return super().coerce(obj, attr, self.canonical(value))


class Choice(ovo.BaseEnumField):
    """A field whose value is one of a ChoiceType."""

    def __init__(self, choices: type[ChoiceType], **kwargs: Any) -> None:
        self.AUTO_TYPE = choices()
        super().__init__(**kwargs)


class NetworkModel(ovo.FieldType):
    """A network info: a list of VIFs (see contract.network_info); JSON text on the wire and in the database."""

    @staticmethod
    def coerce(obj: Any, attr: str, value: Any) -> list[dict[str, Any]]:
        """The list of VIFs. Raises ValueError."""
        if isinstance(value, str):
            value = json.loads(value)
        if not isinstance(value, list):
            raise ValueError(f"{attr} takes a list of VIFs, not {type(value).__name__}")
        return value

    @staticmethod
    def to_primitive(obj: Any, attr: str, value: Any) -> str:
        """JSON text."""
        return json.dumps(value)

    @staticmethod
    def from_primitive(obj: Any, attr: str, value: Any) -> Any:
        """The list of VIFs of a JSON text."""
        return json.loads(value)

    def stringify(self, value: Any) -> str:
        """The VIFs' ids: the rest is long."""
        return f"NetworkModel({','.join(str(vif.get('id')) for vif in value)})"


class NetworkVIFModel(ovo.FieldType):
    """One VIF, a dict; JSON text on the wire."""

    @staticmethod
    def coerce(obj: Any, attr: str, value: Any) -> dict[str, Any]:
        """The VIF. Raises ValueError."""
        if isinstance(value, str):
            value = json.loads(value)
        if not isinstance(value, dict):
            raise ValueError(f"{attr} takes a VIF, not {type(value).__name__}")
        return value

    @staticmethod
    def to_primitive(obj: Any, attr: str, value: Any) -> str:
        """JSON text."""
        return json.dumps(value)

    @staticmethod
    def from_primitive(obj: Any, attr: str, value: Any) -> Any:
        """The VIF of a JSON text."""
        return json.loads(value)


class AddressType(ovo.FieldType):
    """An address on a device bus."""

    PATTERN: ClassVar[str]

    @classmethod
    def coerce(cls, obj: Any, attr: str, value: Any) -> str:
        """The address as text. Raises ValueError."""
        if not re.match(cls.PATTERN, str(value)):
            raise ValueError(f"{attr} must match {cls.PATTERN}, not {value!r}")
        return str(value)


class USBAddress(AddressType):
    PATTERN = "[a-f0-9]+:[a-f0-9]+"


class SCSIAddress(AddressType):
    PATTERN = "[a-f0-9]+:[a-f0-9]+:[a-f0-9]+:[a-f0-9]+"


class IDEAddress(AddressType):
    PATTERN = "[0-1]:[0-1]"


class XenAddress(AddressType):
    PATTERN = "(00[0-9]{2}00)|[1-9][0-9]+"


class ResourceClass(ovo.StringPattern):
    """The name of a Placement resource class; accepted in any case, kept in upper case."""

    PATTERN = r"^[A-Z0-9_]+$"

    def coerce(self, obj: Any, attr: str, value: Any) -> str:
        """The name. Raises ValueError."""
        if not isinstance(value, str) or not re.match(self.PATTERN, value.upper()):
            raise ValueError(f"{attr}: {value!r} is no resource class name")
        return value.upper()


class NetworkModelField(ovo.AutoTypedField):
    AUTO_TYPE = NetworkModel()


class NetworkVIFModelField(ovo.AutoTypedField):
    AUTO_TYPE = NetworkVIFModel()


class USBAddressField(ovo.AutoTypedField):
    AUTO_TYPE = USBAddress()


class SCSIAddressField(ovo.AutoTypedField):
    AUTO_TYPE = SCSIAddress()


class IDEAddressField(ovo.AutoTypedField):
    AUTO_TYPE = IDEAddress()


class XenAddressField(ovo.AutoTypedField):
    AUTO_TYPE = XenAddress()


class ResourceClassField(ovo.AutoTypedField):
    AUTO_TYPE = ResourceClass()


def object_names(field: Any) -> Iterator[str]:
    """Names of the objects that the field's value may contain, by its declaration."""
    pending = [field]
    while pending:
        kind = pending.pop()._type
        if isinstance(kind, ovo.Object):
            yield kind._obj_name
        elif isinstance(kind, ovo.CompoundFieldType):
            pending.append(kind._element_type)
