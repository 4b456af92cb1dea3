"""Django's ``i18n`` library, with a ``translate`` that looks a sentence up once a language, not once a rendering.

Our templates load it in place of ``i18n``: a page says a hundred sentences, and catalogues do not change while a
process runs.
"""

from django import template
from django.template.base import Node, Parser, Token, Variable
from django.template.context import Context
from django.templatetags import i18n
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language, gettext

register = template.Library()
register.tags.update(i18n.register.tags)
register.filters.update(i18n.register.filters)


class SentenceNode(Node):
    """A sentence of the template's own, with neither context nor filter; as in Django, it is not escaped."""

    child_nodelists = ()

    def __init__(self, sentence: str, name: str | None) -> None:
        self.name = name  # of the variable that keeps it, if any
        self.sentence = sentence.replace("%", "%%")  # as makemessages writes it
        self.said: dict[str | None, SafeString] = {}

    def render(self, context: Context) -> SafeString:
        language = get_language()
        if language not in self.said:
            self.said[language] = mark_safe(gettext(self.sentence).replace("%%", "%"))  # noqa: S308 (our own words)
        if self.name is None:
            return self.said[language]
        context[self.name] = self.said[language]
        return SafeString()


@register.tag
def translate(parser: Parser, token: Token) -> Node:
    """Stand for Django's tag, which does all but plain sentences."""
    node = i18n.do_translate(parser, token)
    expression = node.filter_expression
    plain = isinstance(expression.var, Variable) and isinstance(expression.var.literal, str) and not expression.filters
    if not plain or node.noop or node.message_context:
        return node
    return SentenceNode(expression.var.literal, node.asvar)
