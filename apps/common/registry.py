"""The one plug-in mechanism: a table of names and dotted paths."""

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar, cast

from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

T = TypeVar("T")


class Registry(Generic[T]):
    """Names to implementations.

    A path is imported when asked for, so a heavy implementation costs nothing to a process that
    does not use it, and a broken one fails loudly, by name, where it is used.
    """

    def __init__(self, kind: str, paths: Mapping[str, str]) -> None:
        self.kind = kind
        self._paths = dict(paths)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._paths))

    def __contains__(self, name: object) -> bool:
        return name in self._paths

    def register(self, name: str, path: str) -> None:
        """Add an entry from an ``AppConfig.ready``; a taken name is a mistake, not an override."""
        if name in self._paths:
            raise ImproperlyConfigured(f"{self.kind} {name!r} is already {self._paths[name]}")
        self._paths[name] = path

    def get(self, name: str) -> T:
        """Import and return the implementation. Raises KeyError for an unknown name."""
        return cast("T", import_string(self._paths[name]))
