"""What flavor and image wish for: extra specs and image properties, read together.

Where both say something and differ, the request is contradictory (400 at the API,
no host here). Names and meanings: the flavor extra-spec and image-property
references of the Compute API.
"""

from __future__ import annotations

from typing import Any

from kilonova.contract import exceptions, objects

TRUE = frozenset({"1", "t", "true", "on", "y", "yes"})


def truth(value: Any) -> bool:
    return value if isinstance(value, bool) else str(value).strip().lower() in TRUE


class Wishes:
    """`spec` reads an extra spec, `prop` an image property, `both` the one value they agree on."""

    def __init__(self, flavor: objects.Flavor, image: objects.ImageMeta | None) -> None:
        self.flavor = flavor
        self.specs: dict[str, str] = dict(flavor.extra_specs) if flavor.obj_attr_is_set("extra_specs") else {}
        self._props = image.properties if image is not None and image.obj_attr_is_set("properties") else None

    def prop(self, name: str, otherwise: Any = None) -> Any:
        if self._props is None or name not in self._props.fields or not self._props.obj_attr_is_set(name):
            return otherwise
        return getattr(self._props, name)

    def both(self, name: str, prefix: str = "hw") -> Any:
        """Raises FlavorImageConflict when the two differ."""
        spec, prop = self.specs.get(f"{prefix}:{name}"), self.prop(f"{prefix}_{name}")
        if spec is not None and prop is not None and str(spec).lower() != str(prop).lower():
            raise conflict(prefix, name, spec, prop)
        return spec if spec is not None else prop

    def switch(self, name: str) -> bool | None:
        """A yes/no wish. Raises FlavorImageConflict when the two differ."""
        spec, prop = self.specs.get(f"hw:{name}"), self.prop(f"hw_{name}")
        if spec is not None and prop is not None and truth(spec) != truth(prop):
            raise conflict("hw", name, spec, prop)
        value = spec if spec is not None else prop
        return None if value is None else truth(value)

    # --- CPU -------------------------------------------------------------------------------

    def cpu_policy(self) -> str | None:
        """`shared`, `dedicated` or `mixed`; what the flavor dedicates the image cannot share.

        Raises ImageCPUPinningForbidden when the image dedicates what the flavor shares.
        """
        spec, prop = self.specs.get("hw:cpu_policy"), self.prop("hw_cpu_policy")
        if spec in ("dedicated", "mixed") or prop is None:
            return spec
        if spec == "shared" and prop in ("dedicated", "mixed"):
            raise exceptions.ImageCPUPinningForbidden()
        return str(prop)

    def cpu_thread_policy(self) -> str | None:
        return self.specs.get("hw:cpu_thread_policy") or self.prop("hw_cpu_thread_policy")

    def dedicated_count(self) -> int:
        """Of a mixed server: how many CPUs are dedicated, from hw:cpu_dedicated_mask or the real-time mask."""
        mask = self.specs.get("hw:cpu_dedicated_mask")
        if mask is None and truth(self.specs.get("hw:cpu_realtime", "no")):
            mask = self.specs.get("hw:cpu_realtime_mask") or self.prop("hw_cpu_realtime_mask")
        return 0 if not mask else len(cpu_mask(mask, self.flavor.vcpus))

    def isolates_emulator(self) -> bool:
        return self.specs.get("hw:emulator_threads_policy") == "isolate"

    # --- security --------------------------------------------------------------------------

    def tpm(self) -> tuple[str, str] | None:
        """(version, model) of an emulated TPM."""
        version = self.both("tpm_version")
        return None if version is None else (str(version), str(self.both("tpm_model") or "tpm-tis"))

    def memory_encryption_model(self) -> str | None:
        if not self.switch("mem_encryption"):
            return None
        return str(self.both("mem_encryption_model") or "amd-sev")

    def requires_secure_boot(self) -> bool:
        return self.both("secure_boot", "os") == "required"

    def stateless_firmware(self) -> bool:
        return self.prop("hw_firmware_type") == "uefi" and truth(self.prop("hw_firmware_stateless", False))

    # --- memory ----------------------------------------------------------------------------

    def persistent_memory(self) -> list[str]:
        """Labels of persistent-memory namespaces (hw:pmem)."""
        return [label for label in self.specs.get("hw:pmem", "").split(",") if label]


def conflict(prefix: str, name: str, spec: Any, prop: Any) -> exceptions.FlavorImageConflict:
    return exceptions.FlavorImageConflict(
        f"Flavor has {prefix}:{name} extra spec explicitly set to {spec}, conflicting with image "
        f"which has {prefix}_{name} explicitly set to {prop}."
    )


def cpu_mask(text: str, count: int) -> set[int]:
    """CPU numbers of `0-3,^2` below `count`; one that begins with ^ leaves out of all. Raises InvalidInput."""
    everything = set(range(count))
    chosen: set[int] | None = None
    left_out: set[int] = set()
    try:
        for part in filter(None, (each.strip() for each in text.split(","))):
            low, _, high = part.lstrip("^").partition("-")
            # An image's owner writes what he likes: numbers that do not exist are not even made.
            numbers = set(range(int(low), min(int(high or low), count - 1) + 1))
            if part.startswith("^"):
                left_out |= numbers
            else:
                chosen = (chosen or set()) | numbers
    except ValueError as exc:
        raise exceptions.InvalidInput(reason=f"malformed CPU mask {text!r}") from exc
    return (everything if chosen is None else chosen) - left_out
