"""Questions that may follow an answer, made when somebody looks and never before: no answer waits for them.

The built-in model writes nothing of its own: then they come from the headings of passages that were
found for the answer and not used in it.
"""

import re
from functools import cache
from pathlib import Path
from uuid import UUID

from django.utils import translation
from django.utils.translation import gettext as _

from apps.agents.languages import language_of
from apps.common.errors import KnowSphereError
from apps.common.text import legible
from apps.conversations.models import Citation, Message, Turn
from apps.knowledge.models import Document
from apps.models import gateway
from apps.models.accounting import Caller, charged_to
from apps.models.chat import ChatRequest, ResolvedModel
from apps.workspaces.models import User

MOST = 3
LONGEST = 120  # characters of one
READ = 4_000  # characters of the answer that the model sees
BULLET = re.compile(r"^\s*(?:[-*•–]|\d+[.)、])\s*")


@cache
def _prompt() -> str:
    return (Path(__file__).parent / "prompts" / "suggest.md").read_text(encoding="utf-8").strip()


def suggest(turn: Turn, *, reader: User) -> list[str]:
    """Return what may be asked after a turn of the reader's: at most three questions, the same every time.

    None while the reader may not read what the answer stands on, or stood on beside it: they are made of it. A model
    that does not answer costs the reader nothing but these.
    """
    rests_on = Citation.objects.visible_to(reader).filter(message__turn=turn)
    if not all(row.readable for row in rests_on.with_readable(reader)):  # type: ignore[attr-defined]
        return []
    if turn.suggestions is not None:
        return list(turn.suggestions)
    if turn.status != Turn.Status.SUCCEEDED or not _claim(turn.pk):
        return []
    caller, model, answer = _facts(turn)
    if model.provider == "builtin":
        found = _headings(turn, reader)
    else:
        with charged_to(caller):
            found = _asked(model, turn.question, answer)
    _keep(turn.pk, found)
    return found


def _claim(turn_id: UUID) -> bool:
    """Let one of several pages that look at once do the work."""
    return bool(Turn.objects.filter(pk=turn_id, suggestions__isnull=True).update(suggestions=[]))


def _keep(turn_id: UUID, found: list[str]) -> None:
    Turn.objects.filter(pk=turn_id).update(suggestions=found)


def _facts(turn: Turn) -> tuple[Caller, ResolvedModel, str]:
    conversation = turn.conversation
    model = gateway.resolve("chat", workspace_id=conversation.workspace_id, fast=True)
    answer = Message.objects.filter(turn=turn, role="assistant").values_list("text", flat=True).first() or ""
    caller = Caller(conversation.workspace_id, conversation.owner_id, conversation.agent_id, conversation.pk, turn.pk)
    return caller, model, answer


def _asked(model: ResolvedModel, question: str, answer: str) -> list[str]:
    told = f"<question>\n{question[:READ]}\n</question>\n<answer>\n{answer[:READ]}\n</answer>"
    messages = [{"role": "system", "content": _prompt()}, {"role": "user", "content": told}]
    try:
        reply = gateway.chat_now(model, ChatRequest(messages, max_tokens=200, purpose="suggest"))
    except KnowSphereError:
        return []
    lines = (BULLET.sub("", " ".join(legible(line).split())).strip('"“”') for line in reply.text.splitlines())
    return list(dict.fromkeys(line for line in lines if 1 < len(line) <= LONGEST and line != question))[:MOST]


def _headings(turn: Turn, reader: User) -> list[str]:
    """Ask for what else was found: passages of readable documents under headings that were not cited.

    In the question's language, where any of them is: none is better than one in another.
    """
    rows = list(Citation.objects.visible_to(reader).filter(message__turn=turn).exclude(heading="").order_by("n"))
    readable = set(
        Document.objects.visible_to(reader)
        .filter(pk__in={row.document_id for row in rows})
        .values_list("pk", flat=True)
    )
    used = {_innermost(row.heading) for row in rows if row.cited}
    names = dict.fromkeys(_innermost(row.heading) for row in rows if row.document_id in readable)
    language = language_of(turn.question)
    own = [name for name in names if language_of(name) == language] or list(names)
    fresh = [name for name in own if name and name not in used and len(name) <= LONGEST // 2]
    with translation.override(language):
        return [_("What do the documents say about “%(heading)s”?") % {"heading": name} for name in fresh][:MOST]


def _innermost(path: str) -> str:
    return path.rsplit(" > ", 1)[-1].strip()
