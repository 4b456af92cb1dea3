"""A text field encrypted at rest with AES-256-GCM (docs/decisions/encrypted-field.md).

A token is ``0x01 | nonce (12) | ciphertext | tag (16)``. The key is derived from MASTER_KEY by
HKDF-SHA256; the column's name is associated data, so a token copied to another column is refused.
"""

import base64
import os
from functools import lru_cache
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.core.exceptions import FieldError
from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.common.errors import KnowSphereError

VERSION = b"\x01"
MASK = "********"


class SecretUnreadable(KnowSphereError):
    """The token cannot be decrypted: another MASTER_KEY, or somebody changed it."""

    code = "secret_unreadable"
    status = 409
    user_message = _("A stored key cannot be decrypted with this server's MASTER_KEY. Enter the key again.")


class Secret:
    """A plaintext (new) or a token (from the database); shows stars, decrypts on ``reveal()``."""

    __slots__ = ("_associated", "_plain", "_token")

    def __init__(self, plain: str | None = None, *, token: bytes | None = None, associated: bytes = b"") -> None:
        self._plain = plain
        self._token = token
        self._associated = associated

    def reveal(self) -> str:
        """Return the plaintext. Raises SecretUnreadable; rows stay listable without it."""
        if self._plain is None:
            self._plain = _decrypt(self._token or b"", self._associated)
        return self._plain

    @property
    def is_current(self) -> bool:
        """Whether the token is of the newest MASTER_KEY (a plaintext will be)."""
        if self._token is None:
            return True
        try:
            _ciphers()[0].decrypt(self._token[1:13], self._token[13:], self._associated)
        except InvalidTag:
            return False
        return self._token[:1] == VERSION

    def renewed(self) -> "Secret":
        """Return the same secret, to be encrypted anew. Raises SecretUnreadable."""
        return Secret(self.reveal())

    def seal(self, associated: bytes) -> bytes:
        """Return the token for a column, keeping an unchanged one."""
        if self._token is not None and associated == self._associated:
            return self._token
        nonce = os.urandom(12)
        return VERSION + nonce + _ciphers()[0].encrypt(nonce, self.reveal().encode(), associated)

    def __str__(self) -> str:
        return MASK

    __repr__ = __str__


class EncryptedField(models.BinaryField[Any, Any]):
    """Holds a Secret or None. Assign a str to set a new one. Cannot be filtered on or dumped."""

    description = "text encrypted with AES-256-GCM"

    def _associated(self) -> bytes:
        return f"{self.model._meta.label_lower}.{self.name}".encode()

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        if isinstance(value, str):
            value = Secret(value)
        if isinstance(value, Secret):
            value = value.seal(self._associated())
        return super().get_db_prep_value(value, connection, prepared)

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Secret | None:
        return None if value is None else Secret(token=bytes(value), associated=self._associated())

    def to_python(self, value: Any) -> Any:
        return value

    def value_to_string(self, obj: models.Model) -> str:
        return ""

    def get_lookup(self, lookup_name: str) -> Any:
        if lookup_name != "isnull":
            raise FieldError("An encrypted field cannot be filtered on.")
        return super().get_lookup(lookup_name)


@lru_cache(maxsize=16)
def _cipher(encoded: str) -> AESGCM:
    key = base64.b64decode(encoded, validate=True)
    return AESGCM(HKDF(SHA256(), 32, None, b"knowsphere/field-encryption/v1").derive(key))


def _ciphers() -> list[AESGCM]:
    return [_cipher(key) for key in settings.MASTER_KEYS]


def _decrypt(token: bytes, associated: bytes) -> str:
    if token[:1] == VERSION:
        for cipher in _ciphers():
            try:
                return cipher.decrypt(token[1:13], token[13:], associated).decode()
            except InvalidTag:
                continue
    raise SecretUnreadable()
