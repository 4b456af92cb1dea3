"""/memory-items/."""

from typing import Any, ClassVar
from uuid import UUID

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.common.errors import InvalidInput
from apps.common.text import legible
from apps.memory import services
from apps.memory.models import MemoryItem
from apps.rest.operations import Operation
from apps.rest.views import ApiView
from apps.workspaces.api.shapes import InWorkspace, entered, within

READ, WRITE = "memory:read", "memory:write"


class MemoryItemOut(serializers.ModelSerializer[MemoryItem]):
    """A statement that you asked to be remembered."""

    class Meta:
        model = MemoryItem
        fields: ClassVar = ["id", "workspace", "kind", "text", "created_at"]
        read_only_fields = fields


class MemoryItemIn(InWorkspace):
    """A statement to remember; its kind is told from its words."""

    text = serializers.CharField(max_length=1000)


class MemoryItemChange(serializers.Serializer[Any]):
    """Other words for a statement."""

    text = serializers.CharField(max_length=1000)


class MemoryItems(ApiView):
    """What is remembered about you, across conversations. Nobody else sees it."""

    operations = {
        "GET": Operation(output=MemoryItemOut, query=InWorkspace, many=True, scope=READ),
        "POST": Operation(input=MemoryItemIn, output=MemoryItemOut, status=201, scope=WRITE),
    }

    def rows(self) -> QuerySet[MemoryItem]:
        return MemoryItem.objects.visible_to(self.who)

    def on_get(self, request: Request) -> Response:
        """List what is remembered about you."""
        return self.page(self.rows().filter(**within(self)))

    def on_post(self, request: Request) -> Response:
        """Remember a statement; one that is remembered already is not stored twice."""
        given = self.taken()
        workspace = entered(self, given.get("workspace"))
        text = legible(given["text"]).strip()
        if not text:
            raise InvalidInput(field="text", reason="it is empty")
        services.store_items(workspace=workspace, texts=[text], actor=self.who)
        return self.answer(self.rows().filter(workspace=workspace, text=text).first())


class OneMemoryItem(ApiView):
    """A statement that is remembered."""

    operations: ClassVar[Any] = {
        "GET": Operation(output=MemoryItemOut, scope=READ),
        "PATCH": Operation(input=MemoryItemChange, output=MemoryItemOut, scope=WRITE),
        "DELETE": Operation(status=204, scope=WRITE),
    }

    def on_get(self, request: Request, item_id: UUID) -> Response:
        """Return a statement."""
        return self.answer(self.row(item_id, MemoryItem.objects.visible_to(self.who)))

    def rows(self) -> QuerySet[MemoryItem]:
        return MemoryItem.objects.visible_to(self.who)

    def on_patch(self, request: Request, item_id: UUID) -> Response:
        """Change the words of a statement."""
        services.update_item(item=self.row(item_id), text=self.taken()["text"])
        return self.answer(self.row(item_id))

    def on_delete(self, request: Request, item_id: UUID) -> Response:
        """Forget a statement at once."""
        services.delete_item(item=self.row(item_id, MemoryItem.objects.visible_to(self.who)))
        return self.done()
