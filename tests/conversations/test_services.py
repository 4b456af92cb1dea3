"""Services of conversations, where no turn runs."""

from datetime import timedelta

import pytest
from django.utils import timezone

from apps.agents.models import Agent
from apps.common.database import in_db
from apps.common.errors import NotFound
from apps.conversations import erasing, services
from apps.conversations.models import Conversation, Message, Turn
from apps.conversations.rows import message_id


@pytest.fixture
def conversation(acme, ann):
    return services.start_conversation(workspace=acme, actor=ann)


def test_only_members_start_conversations(acme, mal):
    with pytest.raises(NotFound):
        services.start_conversation(workspace=acme, actor=mal)


def test_an_agent_of_another_workspace_is_not_found(acme, ann, mal):
    foreign = Agent.objects.create(workspace=mal.workspaces.get(), name="Foreign")
    with pytest.raises(NotFound):
        services.start_conversation(workspace=acme, actor=ann, agent=foreign)


@pytest.mark.parametrize("persona", ["bea", "mal"])
def test_a_conversation_is_its_owners_alone(conversation, persona, request):
    user = request.getfixturevalue(persona)
    assert not Conversation.objects.visible_to(user).exists()
    with pytest.raises(NotFound):
        services.delete_conversation(conversation=conversation, actor=user)


def test_deleting_hides_at_once_and_undo_brings_it_back(conversation, ann, bea):
    services.delete_conversation(conversation=conversation, actor=ann)
    assert not Conversation.objects.visible_to(ann).exists()
    with pytest.raises(NotFound):
        services.restore_conversation(conversation_id=conversation.pk, actor=bea)
    assert services.restore_conversation(conversation_id=conversation.pk, actor=ann) == conversation
    assert Conversation.objects.visible_to(ann).exists()


def test_undo_lapses(conversation, ann):
    Conversation.objects.filter(pk=conversation.pk).update(deleted_at=timezone.now() - erasing.UNDO)
    with pytest.raises(NotFound):
        services.restore_conversation(conversation_id=conversation.pk, actor=ann)


def test_deleting_asks_a_running_turn_to_stop(conversation, ann):
    turn = Turn.objects.create(conversation=conversation, number=1, client_id="a", question="q")
    services.delete_conversation(conversation=conversation, actor=ann)
    turn.refresh_from_db()
    assert turn.stop_requested


@pytest.mark.django_db(transaction=True)
async def test_what_was_deleted_is_erased_with_all_its_rows(ann, acme, monkeypatch):
    forgotten = []

    async def forget(conversation_id):
        forgotten.append(conversation_id)

    monkeypatch.setattr(erasing, "import_string", lambda path: forget)

    def prepare():
        old, young, kept = (services.start_conversation(workspace=acme, actor=ann) for _ in range(3))
        for conversation in (old, young, kept):
            turn = Turn.objects.create(
                conversation=conversation, number=1, client_id="a", question="q", status="succeeded"
            )
            Message.objects.create(
                id=message_id(turn.pk, "user"), conversation=conversation, turn=turn, role="user", text="q"
            )
            turn.events.create(seq=1, type="token", at_ms=0, data={"text": "x"})
        now = timezone.now()
        Conversation.objects.filter(pk=old.pk).update(deleted_at=now - erasing.UNDO - timedelta(seconds=1))
        Conversation.objects.filter(pk=young.pk).update(deleted_at=now)
        return old, young, kept

    old, young, kept = await in_db(prepare)
    await erasing.erase_deleted()
    assert forgotten == [old.pk]
    assert await in_db(lambda: set(Conversation.objects.values_list("pk", flat=True))) == {young.pk, kept.pk}
    assert await in_db(Message.objects.count) == 2
