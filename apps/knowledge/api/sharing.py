"""Shares within a base: of folders and of single documents. They open nothing to those who may not read the base."""

from django.db.models import QuerySet

from apps.knowledge.models import Document, Folder
from apps.workspaces.api.shares import OneShareOfRow, SharesOfRow

WRITE = "knowledge:write"


class SharesOfDocument(SharesOfRow):
    """Who may read a restricted document besides those who manage its base."""

    operations = SharesOfRow.operations_with(WRITE)

    def shared(self) -> QuerySet[Document]:
        return Document.objects.editable_by(self.who)


class OneShareOfDocument(OneShareOfRow):
    """A share of a document."""

    operations = OneShareOfRow.operations_with(WRITE)

    def shared(self) -> QuerySet[Document]:
        return Document.objects.editable_by(self.who)


class SharesOfFolder(SharesOfRow):
    """Who may read a restricted folder, and what is in it, besides those who manage its base."""

    operations = SharesOfRow.operations_with(WRITE)

    def shared(self) -> QuerySet[Folder]:
        return Folder.objects.editable_by(self.who)


class OneShareOfFolder(OneShareOfRow):
    """A share of a folder."""

    operations = OneShareOfRow.operations_with(WRITE)

    def shared(self) -> QuerySet[Folder]:
        return Folder.objects.editable_by(self.who)
