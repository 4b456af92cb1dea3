"""S3, or what speaks like it, as Django's file store: its failures are OSErrors, as those of a folder are.

So whoever stores and reads files catches the same for both: FileNotFoundError, ENOSPC, any other OSError.
Nothing is ever given an address there; files are served by our own views alone.
"""

import errno
from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from boto3.exceptions import Boto3Error
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from storages.backends.s3 import S3File, S3Storage

P = ParamSpec("P")
R = TypeVar("R")
FULL = {"QuotaExceeded", "XMinioStorageFull", "InsufficientStorage"}
IN_MEMORY_BYTES = 1 << 20  # of a file that is read; the rest is on disk


def _failing_as_files_do(method: Callable[P, R]) -> Callable[P, R]:
    @wraps(method)
    def translated(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except ClientError as error:
            code, status = error.response["Error"]["Code"], error.response["ResponseMetadata"]["HTTPStatusCode"]
            if status == 404 and code != "NoSuchBucket":
                raise FileNotFoundError(errno.ENOENT, "no such object") from error
            kind = errno.ENOSPC if code in FULL or status == 507 else errno.EIO
            raise OSError(kind, f"the object store answered {code}") from error
        except (BotoCoreError, Boto3Error) as error:
            raise OSError(errno.EIO, f"the object store does not answer: {type(error).__name__}") from error

    return translated


class ObjectFile(S3File):
    """An object that is read: brought to this machine when it is first read, not kept in memory."""

    @_failing_as_files_do
    def _get_file(self) -> Any:
        return super()._get_file()

    file = property(_get_file, S3File._set_file)


class ObjectStorage(S3Storage):
    """One bucket. Options are those of django-storages."""

    def __init__(self, **options: Any) -> None:
        """Set what is the same for every bucket: bounded waiting, and checksums only where they are demanded."""
        style = "path" if options.get("endpoint_url") else "auto"
        config = Config(
            signature_version="s3v4",
            s3={"addressing_style": style},
            connect_timeout=5,
            read_timeout=30,
            retries={"mode": "standard", "total_max_attempts": 3},
            request_checksum_calculation="when_required",  # servers other than Amazon's may not know the newer ones
            response_checksum_validation="when_required",
        )
        super().__init__(
            client_config=config,
            transfer_config=TransferConfig(max_concurrency=4),
            max_memory_size=IN_MEMORY_BYTES,
            **options,
        )

    @_failing_as_files_do
    def _open(self, name: str, mode: str = "rb") -> ObjectFile:
        name = self._normalize_name(name)
        try:
            return ObjectFile(name, mode, self)
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] != 404:
                raise
            # An answer to HEAD does not say whether the object or the whole bucket is missing.
            try:
                self.connection.meta.client.head_bucket(Bucket=self.bucket_name)
            except ClientError as missing:
                raise OSError(errno.EIO, "the object store has no such bucket") from missing
            raise FileNotFoundError(errno.ENOENT, "no such object") from error

    @_failing_as_files_do
    def _save(self, name: str, content: Any) -> str:
        saved: str = super()._save(name, content)
        return saved

    @_failing_as_files_do
    def delete(self, name: str) -> None:
        """Delete an object; one that is not there is no failure."""
        super().delete(name)

    @_failing_as_files_do
    def exists(self, name: str) -> bool:
        """Return whether there is such an object."""
        return bool(super().exists(name))

    @_failing_as_files_do
    def listdir(self, name: str) -> tuple[list[str], list[str]]:
        """Return the folders and objects below a name; none below one that is not there."""
        folders, files = super().listdir(name)
        return folders, files

    @_failing_as_files_do
    def size(self, name: str) -> int:
        """Return how many bytes an object has."""
        return int(super().size(name))

    @_failing_as_files_do
    def get_modified_time(self, name: str) -> datetime:
        """Return when an object was written."""
        at: datetime = super().get_modified_time(name)
        return at
