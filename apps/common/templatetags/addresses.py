"""``{% url %}`` as Django's, but it remembers: an address follows from name and arguments alone; a page has fifty."""

from functools import lru_cache
from typing import Any

from django import template
from django.template.base import Parser, Token
from django.template.context import Context
from django.template.defaulttags import URLNode
from django.template.defaulttags import url as django_url
from django.urls import reverse
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

register = template.Library()


@lru_cache(maxsize=8192)
def _address(name: str, args: tuple[str, ...]) -> SafeString:
    return mark_safe(escape(reverse(name, args=args)))  # noqa: S308 (escaped)


class AddressNode(URLNode):
    """Reverse only what was not reversed lately; keywords and ``as`` are Django's."""

    def render(self, context: Context) -> str:
        if self.kwargs or self.asvar or not context.autoescape:
            return super().render(context)
        return _address(self.view_name.resolve(context), tuple([str(arg.resolve(context)) for arg in self.args]))


@register.tag
def url(parser: Parser, token: Token) -> Any:
    """Stand for Django's tag in every template (``builtins`` of the settings)."""
    node = django_url(parser, token)
    return AddressNode(node.view_name, node.args, node.kwargs, node.asvar)
