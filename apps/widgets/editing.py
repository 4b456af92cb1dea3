"""All settings of a widget as one form, whoever fills it in: a page, or a program through the API."""

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from django.db import transaction
from django.forms import model_to_dict

from apps.knowledge.models import KnowledgeBase, KnowledgeBaseShare
from apps.models import budget_services
from apps.models.models import TOKENS, Budget, Period, Scope
from apps.widgets import services
from apps.widgets.forms import WidgetForm
from apps.widgets.models import Widget
from apps.workspaces.models import User

PLAIN = ("agent", "knowledge_bases", "budget")  # fields that are not columns to save as they are


def form_of(widget: Widget, *, actor: User, data: Any = None) -> WidgetForm:
    """Return the form of a widget that came through ``editable_by``, filled with what was sent, if anything."""
    initial = {
        "origins": "\n".join(widget.origins),
        "starters": "\n".join(widget.starters),
        "knowledge_bases": bases_of([widget], actor=actor)[widget.pk],
        "budget": budgets_of([widget], actor=actor).get(widget.pk),
    }
    return WidgetForm(data, instance=widget, initial=initial, actor=actor, workspace=widget.workspace)


def filled(widget: Widget, changes: Mapping[str, Any], *, actor: User) -> WidgetForm:
    """Return the form as it would be sent if nothing but ``changes`` were changed; lists may be lists."""
    form = form_of(widget, actor=actor)
    data = {**model_to_dict(widget, fields=WidgetForm.Meta.fields), **form.initial}
    data |= changes
    for name in ("origins", "starters"):
        if not isinstance(data[name], str):
            data[name] = "\n".join(data[name])
    return form_of(widget, actor=actor, data=data)


@transaction.atomic
def save(form: WidgetForm, *, widget: Widget, actor: User) -> None:
    """Save a form that fits: settings, what the widget reads, and its budget."""
    said = form.cleaned_data
    services.change_widget(widget=widget, actor=actor, **{name: said[name] for name in said if name not in PLAIN})
    services.set_reach(widget=widget, agent=said["agent"], bases=said["knowledge_bases"], actor=actor)
    _set_budget(actor, widget, said["budget"])


def bases_of(widgets: Iterable[Widget], *, actor: User) -> dict[UUID, list[UUID]]:
    """Return the bases that each widget reads, as far as the actor may see them."""
    found: dict[UUID, list[UUID]] = {widget.pk: [] for widget in widgets}
    readable = KnowledgeBase.objects.visible_to(actor).values("pk")
    shares = KnowledgeBaseShare.objects.filter(widget_id__in=found, content_object__in=readable)
    for widget_id, base_id in shares.order_by("content_object__name").values_list("widget_id", "content_object"):
        found[widget_id].append(base_id)
    return found


def budgets_of(widgets: Iterable[Widget], *, actor: User) -> dict[UUID, int]:
    """Return how many tokens a day each widget may spend that has a budget of its own."""
    mine = Budget.objects.visible_to(actor).filter(scope=Scope.WIDGET, unit=TOKENS)
    return {row.subject: int(row.amount) for row in mine.filter(subject__in=[one.pk for one in widgets]) if row.subject}


def _set_budget(actor: User, widget: Widget, amount: Any) -> None:
    if amount is not None:
        budget_services.set_budget(
            workspace=widget.workspace, actor=actor, scope=Scope.WIDGET, subject=widget.pk, unit=TOKENS,
            period=Period.DAY, amount=amount,
        )  # fmt: skip
        return
    own = Budget.objects.editable_by(actor).filter(scope=Scope.WIDGET, subject=widget.pk, by_operator=False)
    for budget in own:
        budget_services.remove_budget(budget=budget, actor=actor)
