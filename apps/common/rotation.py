"""Secrets outside encrypted columns, which a new MASTER_KEY must reach too; apps say where they have some."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from apps.common.registry import Registry


class Held(NamedTuple):
    """One secret somewhere. ``renew`` encrypts it anew, and returns False where it is of the newest key already.

    It raises SecretUnreadable where no key that is set opens it.
    """

    name: str
    renew: Callable[[], bool]


Holder = Callable[[], Iterator[Held]]
HOLDERS = Registry[Holder]("holder of secrets", {})
