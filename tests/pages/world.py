"""Rows that show what pages look like in use: every state of a document, long names, figures, a rich answer."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import uuid4

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

LONG = "A-very-long-name-without-any-place-to-break-it-annual-report-of-all-departments-2025-final-final.pdf"
NAMES = ["差旅与报销管理办法（2026 年修订版）.docx", LONG, "Travel policy.pdf", '<img src=x onerror="alert(1)">.md']
MARKDOWN = """# Travel policy

This policy applies to everybody who travels for work.

Flights are booked **fourteen days** before departure.

| City | Allowance |
| --- | --- |
| Munich | €95 |
| 上海 | ¥600 |

超过八小时的航班可以预订公务舱，须经部门负责人书面同意。
"""
ANSWER = """Business class may be booked where the flight exceeds **eight hours**.[[c1]]

| City | Allowance |
| --- | --- |
| Munich | €95 |

```python
def allowance(city: str, *, a_very_long_argument_name_that_runs_on_and_on_and_on: int = 42) -> "Decimal": return None
```

The share is $\\frac{a}{b} = \\sqrt{2}$.

- 超过八小时的航班可以预订公务舱。[[c1]]
"""


def furnish(workspace, person, base):
    """Fill ``base``, the ledger and a conversation; return a document that was read and a turn with a rich answer."""
    document = _documents(workspace, base)
    _usage(workspace, person)
    return document, _conversation(workspace, person, document)


def _documents(workspace, base):
    from apps.knowledge.models import Chunk, Document

    states = Document.Status.values
    for number, status in enumerate([*states, *states, Document.Status.INDEXED]):
        row = Document(workspace=workspace, knowledge_base=base, status=status, size_bytes=10**number, chunk_count=3)
        row.name, row.sha256 = NAMES[number % len(NAMES)], f"{number + 1:064}"
        row.generation, row.page_count, row.progress = int(status == "indexed"), number, 0.4
        row.error_code = "unreadable_file" if status.startswith("error") else ""
        row.tags = ["policy", "2026"] if number % 2 else []
        row.markdown_key = default_storage.save("documents/shown.md", ContentFile(MARKDOWN.encode()))
        row.file.save("original", ContentFile(MARKDOWN.encode()), save=False)
        row.save()
    for ordinal, text in enumerate(MARKDOWN.split("\n\n")):
        start = MARKDOWN.index(text)
        Chunk.objects.create(
            knowledge_base=base, document=row, generation=1, level=0, ordinal=ordinal, text=text, start=start,
            end=start + len(text), page=1, heading="Travel policy",
        )  # fmt: skip
    return row


def _usage(workspace, person):
    from apps.models import ledger
    from apps.models.accounting import Caller, Entry, cost_of
    from apps.models.chat import Price, ResolvedModel, Usage

    price, usage = Price(Decimal(2), Decimal(8), currency="CNY"), Usage(12_000, 800, 9_000)
    for day in range(12):
        model = ResolvedModel("chat", "openai_compatible", f"model-{day % 3}", price=price)
        at, outcome = datetime.now(UTC) - timedelta(days=day), "failed" if day == 3 else "ok"
        caller = Caller(workspace.pk, person.pk)
        ledger.book(Entry(at, caller, model, "answer", usage, 400, outcome, cost_of(usage, price)))
    ledger.flush()


def _conversation(workspace, person, document):
    from apps.conversations.models import Citation, Conversation, Message, Turn

    talk = Conversation.objects.create(
        workspace=workspace, owner=person, title="When may business class be booked? 何时"
    )
    given = {"conversation": talk, "client_id": str(uuid4()), "status": "succeeded", "number": 1}
    turn = Turn.objects.create(**given, question="When may business class be booked?")
    answer = Message.objects.create(conversation=talk, turn=turn, role="assistant", text=ANSWER)
    where = {"document": document.name, "document_id": document.pk, "heading": "Travel policy", "page": 3}
    Citation.objects.create(message=answer, n=1, text=MARKDOWN.split("\n\n")[1], **where)
    return turn
