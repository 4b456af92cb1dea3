"""/widgets/."""

from collections.abc import Callable
from typing import Any, ClassVar, cast
from uuid import UUID

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.rest.handler import invalid
from apps.rest.operations import Operation
from apps.rest.views import ApiView
from apps.widgets import editing, services
from apps.widgets.models import Widget
from apps.workspaces.api.shapes import InWorkspace, entered, within

READ, WRITE = "workspace:read", "workspace:write"
LINE = serializers.CharField(max_length=260)


class WidgetOut(serializers.ModelSerializer[Widget]):
    """A chat widget. `public_id` stands in other sites' pages; `knowledge_bases` are those that you may see."""

    origins = serializers.ListField(child=serializers.CharField(), help_text="The sites that it may stand on.")
    starters = serializers.ListField(child=serializers.CharField())
    knowledge_bases = serializers.SerializerMethodField()
    budget = serializers.SerializerMethodField(help_text="Tokens a day; null: no budget of its own.")
    has_identity_secret = serializers.SerializerMethodField()

    class Meta:
        model = Widget
        fields: ClassVar = [
            "id", "workspace", "public_id", "name", "agent", "knowledge_bases", "enabled", "origins", "title",
            "greeting", "starters", "color", "theme", "position", "language", "sources", "per_visitor_hour",
            "per_address_hour", "per_day", "budget", "has_identity_secret", "created_at", "changed_at",
        ]  # fmt: skip
        read_only_fields = fields

    def _of_all(self, name: str, look: Callable[..., Any], widget: Widget) -> Any:
        """Return what ``look`` finds for all widgets of the page, looked up once."""
        known = cast("dict[str, Any]", self.context)
        if name not in known:
            rows = self.parent.instance if isinstance(self.parent, serializers.ListSerializer) else [widget]
            known[name] = look(rows, actor=known["view"].who)
        return known[name]

    def get_knowledge_bases(self, widget: Any) -> list[UUID]:
        """Return the bases that it reads."""
        return self._of_all("bases", editing.bases_of, widget)[widget.pk]  # type: ignore[no-any-return]

    def get_budget(self, widget: Any) -> int | None:
        """Return its budget."""
        return self._of_all("budgets", editing.budgets_of, widget).get(widget.pk)  # type: ignore[no-any-return]

    def get_has_identity_secret(self, widget: Any) -> bool:
        """Return whether a site can sign who its visitors are."""
        return widget.identity_secret is not None


class WidgetChange(serializers.Serializer[Any]):
    """What changes. It reads `knowledge_bases` and asks `agent`, which you must manage, and nothing else."""

    name = serializers.CharField(max_length=80, required=False)
    agent = serializers.UUIDField(required=False, allow_null=True)
    knowledge_bases = serializers.ListField(child=serializers.UUIDField(), max_length=200, required=False)
    enabled = serializers.BooleanField(required=False)
    origins = serializers.ListField(child=LINE, max_length=100, required=False)
    title = serializers.CharField(max_length=60, required=False, allow_blank=True)
    greeting = serializers.CharField(max_length=400, required=False, allow_blank=True)
    starters = serializers.ListField(child=serializers.CharField(max_length=120), max_length=4, required=False)
    color = serializers.RegexField(r"^#[0-9A-Fa-f]{6}$", required=False)
    theme = serializers.ChoiceField(choices=Widget.Theme.choices, required=False)
    position = serializers.ChoiceField(choices=Widget.Position.choices, required=False)
    language = serializers.ChoiceField(choices=Widget.Language.choices, required=False)
    sources = serializers.ChoiceField(choices=Widget.Sources.choices, required=False)
    per_visitor_hour = serializers.IntegerField(min_value=0, max_value=2**31 - 1, required=False)
    per_address_hour = serializers.IntegerField(min_value=0, max_value=2**31 - 1, required=False)
    per_day = serializers.IntegerField(min_value=0, max_value=2**31 - 1, required=False)
    budget = serializers.IntegerField(min_value=0, max_value=10**11, required=False, allow_null=True)


class WidgetIn(InWorkspace):
    """A new widget, on no site yet."""

    name = serializers.CharField(max_length=80)


class SecretOut(serializers.Serializer[Any]):
    """The secret with which a site signs who its visitors are, shown this once."""

    secret = serializers.CharField()


class _OfWidgets(ApiView):
    def rows(self) -> QuerySet[Widget]:
        return Widget.objects.visible_to(self.who)

    def editable(self, widget_id: UUID) -> Widget:
        """Return a widget that the caller may change. Raises NotFound."""
        mine = Widget.objects.editable_by(self.who).select_related("workspace", "agent")
        found: Widget = self.row(widget_id, mine)
        return found


class Widgets(_OfWidgets):
    """Chats on other people's sites."""

    operations = {
        "GET": Operation(output=WidgetOut, query=InWorkspace, many=True, scope=READ),
        "POST": Operation(input=WidgetIn, output=WidgetOut, status=201, scope=WRITE),
    }

    def on_get(self, request: Request) -> Response:
        """List the widgets of workspaces that you own or administer."""
        return self.page(self.rows().filter(**within(self)))

    def on_post(self, request: Request) -> Response:
        """Make a widget, in a workspace that you own or administer."""
        given = self.taken()
        workspace = entered(self, given.get("workspace"))
        return self.answer(services.create_widget(workspace=workspace, actor=self.who, name=given["name"]))


class OneWidget(_OfWidgets):
    """A widget."""

    operations = {
        "GET": Operation(output=WidgetOut, scope=READ),
        "PATCH": Operation(input=WidgetChange, output=WidgetOut, scope=WRITE),
        "DELETE": Operation(status=204, scope=WRITE),
    }

    def on_get(self, request: Request, widget_id: UUID) -> Response:
        """Return a widget."""
        return self.answer(self.row(widget_id))

    def on_patch(self, request: Request, widget_id: UUID) -> Response:
        """Change a widget; it counts from the next question on."""
        widget, given = self.editable(widget_id), self.taken()
        form = editing.filled(widget, given, actor=self.who)
        if not form.is_valid():
            raise invalid({name: list(reasons) for name, reasons in form.errors.items()})
        editing.save(form, widget=widget, actor=self.who)
        return self.answer(self.row(widget_id))

    def on_delete(self, request: Request, widget_id: UUID) -> Response:
        """Delete a widget with its visitors and what they asked."""
        services.delete_widget(widget=self.editable(widget_id), actor=self.who)
        return self.done()


class RenewWidget(_OfWidgets):
    """Another public id."""

    operations = {"POST": Operation(output=WidgetOut, scope=WRITE)}

    def on_post(self, request: Request, widget_id: UUID) -> Response:
        """Give the widget another public id: the old snippet and its visitors' sessions end."""
        services.renew_public_id(widget=self.editable(widget_id), actor=self.who)
        return self.answer(self.row(widget_id))


class RenewSecret(_OfWidgets):
    """Another secret for signed identities."""

    operations = {"POST": Operation(output=SecretOut, status=201, changes=False, scope=WRITE)}

    def on_post(self, request: Request, widget_id: UUID) -> Response:
        """Make a new secret; the old one ends. It is not repeated under an Idempotency-Key."""
        secret = services.renew_identity_secret(widget=self.editable(widget_id), actor=self.who)
        return Response({"secret": secret}, status=201)
