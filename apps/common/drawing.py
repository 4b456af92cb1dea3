"""Form controls as Django draws them, without a template for every attribute of every option.

A choice among five hundred time zones took a thousand templates. What is not drawn here, Django's renderer draws.
"""

from collections.abc import Iterable
from typing import Any

from django.forms.renderers import DjangoTemplates
from django.http import HttpRequest
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

INPUTS = ("text", "number", "email", "url", "password", "hidden", "date", "search", "file", "checkbox")
BY_INPUT = frozenset(f"django/forms/widgets/{kind}.html" for kind in INPUTS)


class Renderer(DjangoTemplates):
    """``FORM_RENDERER`` of the settings."""

    def render(self, template_name: str, context: dict[str, Any], request: HttpRequest | None = None) -> str:
        if template_name in BY_INPUT:
            return _input(context["widget"])
        if template_name == "django/forms/widgets/select.html":
            return _select(context["widget"])
        return super().render(template_name, context, request)


def _attributes(attrs: dict[str, Any]) -> SafeString:
    shown = ((name, value) for name, value in attrs.items() if value is not False)
    parts = [f" {name}" if value is True else format_html(' {}="{}"', name, str(value)) for name, value in shown]
    return mark_safe("".join(parts))  # noqa: S308 (each is escaped)


def _input(widget: dict[str, Any]) -> SafeString:
    value = widget["value"]
    given = "" if value is None else format_html(' value="{}"', str(value))
    return format_html(
        '<input type="{}" name="{}"{}{}>', widget["type"], widget["name"], given, _attributes(widget["attrs"])
    )


def _select(widget: dict[str, Any]) -> SafeString:
    parts = []
    for group, options, _index in widget["optgroups"]:
        drawn = _options(options)
        parts.append(format_html('<optgroup label="{}">{}</optgroup>', group, drawn) if group else drawn)
    inside = mark_safe("".join(parts))  # noqa: S308 (each is escaped)
    return format_html('<select name="{}"{}>{}</select>', widget["name"], _attributes(widget["attrs"]), inside)


def _options(options: Iterable[dict[str, Any]]) -> SafeString:
    drawn = (
        f'\n<option value="{conditional_escape(str(one["value"]))}"{_attributes(one["attrs"])}>'
        f"{conditional_escape(one['label'])}</option>"
        for one in options
    )
    return mark_safe("".join(drawn))  # noqa: S308 (each is escaped)
