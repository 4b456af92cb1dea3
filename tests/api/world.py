"""One thing of every kind in acme, by the names that addresses have for them."""

from decimal import Decimal
from types import SimpleNamespace

from django.core.files.base import ContentFile


def furnish(acme, ann, bea, base):
    """Put one thing of every kind into acme; conversations and what is remembered are ann's."""
    from apps.agents.services import default_agent
    from apps.conversations.models import Attachment, Citation, Conversation, Message, Turn
    from apps.evals.keeping import add_case, create_dataset
    from apps.knowledge.models import Chunk, Document, Job, MetadataField
    from apps.knowledge.services import create_folder, grant
    from apps.memory.models import MemoryItem
    from apps.models.budget_services import set_budget
    from apps.models.models import ModelConfig
    from apps.widgets.services import create_widget
    from apps.workspaces.models import AuditEvent, Membership, Role
    from apps.workspaces.services import create_api_key, create_department, invite

    document = Document(
        workspace=acme, knowledge_base=base, name="plan.md", size_bytes=6, sha256="0" * 64,
        status="error_parsing", error_code="empty_file", uploaded_by=ann,
    )  # fmt: skip
    document.file.save("original", ContentFile(b"# Plan"), save=False)
    document.markdown_key = document.file.storage.save("plan.md", ContentFile(b"# Plan"))
    document.save()
    chunk = Chunk.objects.create(
        knowledge_base=base, document=document, generation=0, level=0, ordinal=0, text="# Plan", start=0, end=6
    )
    grant(knowledge_base=base, user=bea, level="read", actor=ann)
    item = MemoryItem.objects.create(workspace=acme, user=ann, kind="fact", text="Acme has two canteens.")
    model = ModelConfig.objects.create(workspace=acme, kind="chat", name="m", base_url="http://127.0.0.1:9/v1")
    conversation = Conversation.objects.create(workspace=acme, owner=ann, agent=default_agent(acme))
    turn = Turn.objects.create(
        conversation=conversation, number=1, client_id="c", status="succeeded", question="Why?", last_seq=1
    )
    message = Message.objects.create(conversation=conversation, turn=turn, role="assistant", text="So.[[c1]]")
    Citation.objects.create(message=message, n=1, document="plan.md", document_id=document.pk, text="# Plan")
    attachment = Attachment(
        workspace=acme, owner=ann, name="a.md", kind="document", media_type="text/markdown", size_bytes=1, text="a"
    )
    attachment.file.save("a.md", ContentFile(b"a"), save=False)
    attachment.save()
    department = create_department(workspace=acme, name="Sales", actor=ann)
    key, _secret = create_api_key(workspace=acme, name="k", scopes=["knowledge:read"], actor=ann)
    folder = create_folder(knowledge_base=base, name="Plans", actor=ann)
    field = MetadataField.objects.create(knowledge_base=base, key="year", type="number")
    job = Job.objects.create(workspace=acme, knowledge_base=base, kind="parse", scope="x", created_by=ann)
    invitation, _link = invite(workspace=acme, email="", role=Role.VIEWER, actor=ann)
    budget = set_budget(workspace=acme, actor=ann, scope="turn", amount=Decimal(9))
    dataset = create_dataset(workspace=acme, actor=ann, name="Greetings", kind="intent")
    case = add_case(dataset=dataset, text="Hi", intent="greeting", actor=ann)
    widget = create_widget(workspace=acme, actor=ann, name="Shop")
    return SimpleNamespace(
        member_id=Membership.objects.get(workspace=acme, user=bea).pk, invitation_id=invitation.pk,
        event_id=AuditEvent.objects.filter(workspace=acme).latest("at").pk, budget_id=budget.pk,
        dataset_id=dataset.pk, case_id=case.pk, widget_id=widget.pk,
        folder_id=folder.pk, field_id=field.pk, job_id=job.pk,
        workspace_id=acme.pk, department_id=department.pk, key_id=key.pk, user_id=bea.pk,
        base_id=base.pk, document_id=document.pk, chunk_id=chunk.pk, share_id=base.shares.get(user=bea).pk,
        item_id=item.pk, model_id=model.pk, agent_id=conversation.agent_id, conversation_id=conversation.pk,
        turn_id=turn.pk, message_id=message.pk, attachment_id=attachment.pk,
    )  # fmt: skip
