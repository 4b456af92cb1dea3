"""Settings of a chunker: read from a form or a stored row, and checked both times by the same rules."""

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, Literal, Self, cast

Unit = Literal["characters", "tokens", "levels", ""]
LARGEST = 20_000  # of a chunk, in characters or tokens


class SettingRefused(ValueError):
    """A chunker's setting cannot be used; ``field`` and ``reason`` say which and why."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Setting:
    """What a form has to know of one setting. ``least`` and ``most`` bound a number, or the length of a text."""

    name: str
    default: int | str | bool
    unit: Unit
    least: int
    most: int


def number(default: int, *, least: int, most: int = LARGEST, unit: Unit = "characters") -> Any:
    """Return the field of a whole number."""
    return field(default=default, metadata={"least": least, "most": most, "unit": unit})


def token_limit(default: int) -> Any:
    """Return the field of a limit in tokens of the model that embeds; 0 is no limit."""
    return number(default, least=0, unit="tokens")


def words(default: str = "", *, most: int) -> Any:
    """Return the field of a text."""
    return field(default=default, metadata={"least": 0, "most": most, "unit": ""})


def switch(default: bool = False) -> Any:
    """Return the field of yes or no."""
    return field(default=default, metadata={"least": 0, "most": 1, "unit": ""})


@dataclass(frozen=True, slots=True)
class ChunkerSettings:
    """Base of each chunker's settings; a subclass adds fields made by the functions above, and ``check``."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Return checked settings from stored or typed values.

        Raises:
            SettingRefused: an unknown name, a value of another kind, or values that do not fit together.
        """
        kinds = {setting.name: type(setting.default) for setting in cls.described()}
        for name, value in values.items():
            if name not in kinds:
                raise SettingRefused(name, "there is no such setting")
            if type(value) is not kinds[name]:
                said = {int: "a whole number", str: "a text", bool: "true or false"}[kinds[name]]
                raise SettingRefused(name, f"must be {said}")
        settings = cls(**values)
        settings.check()
        return settings

    @classmethod
    def described(cls) -> list[Setting]:
        """Return the settings in the order in which a form shows them: a chunker's own before those it shares."""
        found: list[Field[Any]] = sorted(fields(cls), key=lambda one: one.name.startswith("delimiter"))
        return [Setting(one.name, cast("int | str | bool", one.default), **one.metadata) for one in found]

    def check(self) -> None:
        """Raise SettingRefused where a value is out of its bounds; subclasses add what has to fit together."""
        for setting in self.described():
            value = getattr(self, setting.name)
            if isinstance(value, str):
                if len(value) > setting.most:
                    raise SettingRefused(setting.name, f"must be {setting.most} characters or fewer")
            elif not setting.least <= value <= setting.most:
                raise SettingRefused(setting.name, f"must be between {setting.least} and {setting.most}")

    def within(self, limit: int) -> Self:
        """Return the same settings for a model that reads no more than this many tokens of a chunk."""
        return self


def check_tokens(settings: ChunkerSettings, *names: str) -> None:
    """Refuse a limit in tokens that is neither 0 nor large enough to hold anything."""
    for name in names:
        if 0 < getattr(settings, name) < 16:
            raise SettingRefused(name, f"must be 0 (no limit) or between 16 and {LARGEST}")


def check_overlap(settings: ChunkerSettings, name: str, *sizes: str) -> None:
    """Refuse an overlap that would leave no room for anything new in one of these sizes; one of 0 is none."""
    for size in sizes:
        if getattr(settings, size) and getattr(settings, name) > getattr(settings, size) // 2:
            raise SettingRefused(name, f"must be between 0 and half of {size}")
