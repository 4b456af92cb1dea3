"""Template tags of the pages of models and their use."""

from datetime import datetime
from decimal import Decimal

from django import forms, template
from django.utils.dateparse import parse_datetime
from django.utils.formats import number_format
from django.utils.translation import gettext as _

from apps.models.budget_rules import written
from apps.models.forms import ABILITIES
from apps.models.models import TOKENS, Kind
from apps.models.users import Use

register = template.Library()


@register.filter
def words(text: str) -> list[str]:
    """Split a template's list of names."""
    return text.split()


@register.filter
def field(form: forms.Form, name: str) -> forms.BoundField | None:
    """Return a form's field by its name, None where it has no such field."""
    return form[name] if name in form.fields else None


@register.filter
def abilities(names: list[str]) -> list[str]:
    """Return what a test found a model able to do, in words."""
    return [str(shown) for name, shown in ABILITIES if name in names]


@register.filter
def moment(text: str) -> datetime | None:
    """Return the time that a stored JSON value says."""
    return parse_datetime(text)


@register.filter
def duration(ms: float) -> str:
    """Return milliseconds as people read them: 61 ms, 4.1 s."""
    if ms < 1_000:
        return _("%(n)s ms") % {"n": round(ms)}
    return _("%(n)s s") % {"n": number_format(ms / 1_000, decimal_pos=1)}


@register.filter
def money(amount: Decimal, currency: str) -> str:
    """Return an amount with its unit: "12.40 CNY", "3,000 tokens"."""
    return f"{written(amount, currency)} {_('tokens') if currency == TOKENS else currency}"


@register.filter
def compact(count: int | None) -> str:
    """Return a count of tokens in at most five characters: 940, 12.4 k, 3.1 M."""
    amount = count or 0
    for size, letter in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if amount >= size:
            return f"{number_format(amount / size, decimal_pos=1 if amount < 100 * size else 0)} {letter}"
    return str(amount)


@register.filter
def short_reference(reference: str) -> str:
    """Return a model's name without what kind of provider it has."""
    return reference.partition(":")[2] or reference


@register.filter
def kind_name(kind: str) -> str:
    """Return a kind of model in words."""
    return str(Kind(kind).label) if kind in Kind.values else kind


@register.filter
def shown(use: Use) -> str:
    """Return what uses a model, in words."""
    if not use.name:
        return _("something you may not see")
    words = {
        "knowledge_base": _("knowledge base “%(name)s”"),
        "agent": _("agent “%(name)s”"),
        "model": _("standby of %(name)s"),
        "default": _("job “%(name)s”"),
    }
    return words.get(use.kind, "%(name)s") % {"name": use.name}
