"""Files of settings, read strictly: unknown and repeated fields are refused, nothing is converted.

For policies and suites; specs are read here and checked in `spec`. Everything raises SpecError.
"""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, TypeVar

from evaluators.errors import SpecError

_Item = TypeVar("_Item")
_LARGEST = 1e300


def read_yaml(path: Path) -> object:
    """Read a YAML file of plain values."""
    import yaml  # noqa: PLC0415 - half of the start-up time, and only files of settings need it

    class _Loader(yaml.SafeLoader):
        pass

    def mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[Any, Any]:
        names = [str(loader.construct_object(name)) for name, _ in node.value]
        unique(names, "field")
        return dict(loader.construct_mapping(node, deep=True))

    _Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)
    try:
        with path.open(encoding="utf-8") as file:
            return yaml.load(file, _Loader)  # noqa: S506 - a safe loader that minds repeated names
    except yaml.YAMLError as error:
        raise SpecError(f"is not YAML: {error}") from error
    except UnicodeDecodeError as error:
        raise SpecError("is not UTF-8") from error
    except RecursionError as error:
        raise SpecError("is nested too deeply") from error


def record(
    value: object, where: str, required: Collection[str], optional: Collection[str] = ()
) -> dict[str, Any]:
    """Return an object that has the required fields and none that is unknown."""
    if not isinstance(value, dict):
        raise SpecError(f"{where}: must be an object")
    known = {*required, *optional}
    if unknown := sorted(str(name) for name in value if name not in known):
        raise SpecError(f"{where}: unknown field {', '.join(unknown)}")
    if missing := [name for name in required if name not in value]:
        raise SpecError(f"{where}: {', '.join(missing)} is missing")
    return dict(value)


def version(fields: dict[str, Any], where: str) -> None:
    """Refuse any `schema_version` but the integer 1, which is also the default."""
    found = fields.get("schema_version", 1)
    if type(found) is not int or found != 1:
        raise SpecError(f"{where}: schema_version must be 1")


def text(value: object, where: str) -> str:
    """Return text that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise SpecError(f"{where} must be text that is not blank (quote numbers and dates)")
    return value


def choice(value: object, choices: Collection[str], where: str) -> str:
    """Return one of the allowed words."""
    if not isinstance(value, str) or value not in choices:
        raise SpecError(f"{where} must be {' or '.join(choices)}")
    return value


def number(value: object, where: str) -> float:
    """Return a finite number as it is."""
    if type(value) in {int, float} and abs(value) <= _LARGEST:  # type: ignore[arg-type]
        return value  # type: ignore[return-value]
    raise SpecError(f"{where} must be a number")


def integer(value: object, where: str, least: int = 0, most: int = 2**31) -> int:
    """Return an integer from `least` to `most`."""
    if type(value) is not int or not least <= value <= most:
        raise SpecError(f"{where} must be an integer from {least} to {most}")
    return value


def items(value: object, where: str, read: Callable[[object, str], _Item]) -> tuple[_Item, ...]:
    """Read a list; the place of each item is named by its number."""
    if not isinstance(value, list):
        raise SpecError(f"{where} must be a list")
    return tuple(read(item, f"{where} {count}") for count, item in enumerate(value, 1))


def unique(values: Collection[str], where: str) -> None:
    """Refuse a value that occurs twice."""
    seen: set[str] = set()
    for value in values:
        if value in seen:
            raise SpecError(f"{where} {value!r} occurs more than once")
        seen.add(value)
