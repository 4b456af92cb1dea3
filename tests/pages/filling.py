"""Many rows of every kind that lists show, each a copy of a row that is there."""

from datetime import timedelta
from itertools import chain
from uuid import uuid4

from django.db import connection
from django.db.models import F
from django.db.models.expressions import RawSQL
from django.utils import timezone

WORD = "md5(random()::text)"  # a text that no other row has


def copy(row, count, **own):
    """Insert copies of a row in one statement; return their ids.

    ``own``: what each copy has of its own, by column: an SQL expression, where ``g`` counts from 1, or a list of ids.
    """
    meta = row._meta
    columns = {field.attname: field.column for field in meta.concrete_fields if not field.generated}
    if meta.pk.get_internal_type() == "UUIDField":
        own = {meta.pk.attname: [uuid4() for _ in range(count)], **own}
    else:
        del columns[meta.pk.attname]  # the database counts
    lists = [own[name] for name in columns if isinstance(own.get(name), list)]
    values = {name: own.get(name, f'old."{column}"') for name, column in columns.items()}
    chosen = ", ".join("(%s::uuid[])[g]" if isinstance(value, list) else value for value in values.values())
    names = ", ".join(f'"{column}"' for column in columns.values())
    with connection.cursor() as cursor:
        cursor.execute(
            f'INSERT INTO "{meta.db_table}" ({names}) SELECT {chosen} '
            f'FROM "{meta.db_table}" AS old, generate_series(1, {count}) AS g WHERE old."{meta.pk.column}" = %s',
            [*lists, row.pk],
        )
    return own.get(meta.pk.attname, [])


def fill(world, count):
    """Put as many rows into every list that somebody of acme may come upon."""
    documents = _knowledge(world, count)
    people = _people(world, count)
    _shares(world, people)
    _conversations(world, count, documents)
    _agents(world, count, people)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")  # or plans are those of empty tables


def _people(world, count):
    from apps.workspaces.models import (
        ApiKey,
        AuditEvent,
        Department,
        DepartmentMember,
        Invitation,
        Membership,
        Quota,
    )  # fmt: skip

    things = world.things
    people = copy(world.bea, count, email=f"{WORD} || '@example.com'")
    members = copy(Membership.objects.get(pk=things.member_id), count, user_id=people)
    groups = copy(Department.objects.get(pk=things.department_id), count, name=WORD)
    Department.objects.filter(pk__in=groups).update(lineage=RawSQL("ARRAY[id]", ()))
    inside = chain(zip(groups, members, strict=True), ((things.department_id, member) for member in members))
    DepartmentMember.objects.bulk_create(DepartmentMember(department_id=g, membership_id=m) for g, m in inside)
    copy(ApiKey.objects.get(pk=things.key_id), count, digest=WORD)
    copy(Invitation.objects.get(pk=things.invitation_id), count, digest=WORD)
    copy(AuditEvent.objects.get(pk=things.event_id), count)
    Quota.objects.bulk_create(Quota(workspace=world.acme, user_id=user, kind="turns") for user in people)
    workspaces = copy(world.acme, count, slug=WORD)
    Membership.objects.bulk_create(Membership(workspace_id=pk, user=world.ann, role="owner") for pk in workspaces)
    return people


def _shares(world, people):
    """Share one row of every kind with each of the people."""
    from apps.agents.models import Agent
    from apps.evals.models import Dataset
    from apps.knowledge.models import Document, Folder
    from apps.models.models import ModelConfig
    from apps.workspaces.services import Subject, share

    things = world.things
    rows = [world.handbook, Document.objects.get(pk=things.document_id), Folder.objects.get(pk=things.folder_id)]
    rows += [Dataset.objects.get(pk=things.dataset_id), ModelConfig.objects.get(pk=things.model_id)]
    rows += Agent.objects.filter(pk__in=(things.agent_id, world.more.agent_id))
    for row in rows:
        first = row.shares.filter(user=world.bea).first()
        first = first or share(row=row, subject=Subject(user=world.bea), level="read", actor=world.ann)
        copy(first, len(people), user_id=people)


def _knowledge(world, count):
    from apps.knowledge.models import (
        Chunk,
        ChunkOverride,
        Document,
        Folder,
        IngestionAttempt,
        Job,
        KnowledgeBase,
        MetadataField,
        Synonyms,
    )  # fmt: skip

    things = world.things
    copy(KnowledgeBase.objects.get(pk=world.handbook.pk), count, name=WORD)
    documents = copy(Document.objects.get(pk=things.document_id), count, sha256=f"{WORD} || {WORD}")
    folders = copy(Folder.objects.get(pk=things.folder_id), count, name=WORD)
    Folder.objects.filter(pk__in=folders).update(lineage=RawSQL("ARRAY[id]", ()))
    copy(MetadataField.objects.get(pk=things.field_id), count, key=WORD)
    copy(Job.objects.get(pk=things.job_id), count, scope=WORD)
    copy(Synonyms.objects.get(pk=world.more.synonyms_id), count)
    of_document = {"document_id": things.document_id}
    at = Chunk.objects.filter(**of_document).count()
    copy(Chunk.objects.get(pk=world.more.chunk_id), count, ordinal=f"g + {at}")
    ChunkOverride.objects.bulk_create(
        ChunkOverride(**of_document, content_hash=uuid4(), original="a", text="b") for _ in range(count)
    )
    at = IngestionAttempt.objects.count()
    IngestionAttempt.objects.bulk_create(
        IngestionAttempt(**of_document, number=at + n, step="parse", outcome="failed") for n in range(count)
    )
    return documents


def _conversations(world, count, documents):
    from apps.conversations.models import Attachment, Citation, Conversation, Feedback, Message, Turn
    from apps.memory.models import DocumentAffinity, MemoryItem
    from apps.widgets.models import Visitor, Widget

    things = world.things
    copy(Conversation.objects.get(pk=things.conversation_id), count)
    turn, message = Turn.objects.get(pk=things.turn_id), Message.objects.get(pk=things.message_id)
    at = Turn.objects.count()
    turns = copy(turn, count, number=f"g + {at}", client_id=WORD)
    messages = copy(message, count, turn_id=turns)
    cited = Citation.objects.get(pk=world.more.citation_id)
    copy(cited, count, message_id=messages)
    copy(cited, count, n=f"g + {at}")
    Feedback.objects.bulk_create(Feedback(turn_id=pk, good=False) for pk in turns)
    copy(Attachment.objects.get(pk=things.attachment_id), count)
    copy(MemoryItem.objects.get(pk=things.item_id), count)
    copy(DocumentAffinity.objects.get(pk=world.more.affinity_id), count, document_id=documents)
    DocumentAffinity.objects.update(citations=F("citations") + 3)
    copy(Widget.objects.get(pk=world.more.widget_id), count, public_id=f"left({WORD}, 20)")
    visitors = copy(Visitor.objects.get(pk=world.visitor.pk), count)
    asked = Conversation.objects.get(pk=world.apart["widgets:show-transcript"]["conversation_id"])
    theirs = copy(asked, count, visitor_id=visitors)
    copy(asked.turns.first(), count, conversation_id=theirs)
    copy(asked.turns.first(), count, number=f"g + {at}", client_id=WORD)


def _agents(world, count, people):
    from apps.agents.models import Agent, AgentVersion
    from apps.evals.models import Case, Dataset
    from apps.models.models import Budget, ModelConfig, UsageRecord

    things, more = world.things, world.more
    copy(Agent.objects.get(pk=more.agent_id), count, name=WORD)
    at = AgentVersion.objects.count()
    copy(AgentVersion.objects.get(pk=more.version_id), count, number=f"g + {at}")
    copy(Dataset.objects.get(pk=things.dataset_id), count, name=WORD)
    copy(Case.objects.get(pk=things.case_id), count)
    copy(ModelConfig.objects.get(pk=things.model_id), count)
    copy(Budget.objects.get(pk=things.budget_id), count, scope="'person'", subject=people)
    day = timezone.now() - timedelta(hours=1)
    UsageRecord.objects.bulk_create(
        UsageRecord(
            at=day, workspace=world.acme, user=world.ann, model=f"m{n}", kind="chat", purpose="answer", outcome="ok",
            tokens_in=1, tokens_out=1, tokens_cached=0, estimated=False, ms=1, conversation_id=uuid4(),
        )
        for n in range(count)
    )  # fmt: skip
