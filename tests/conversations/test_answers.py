"""Thumbs with their reason, and questions that may follow."""

import pytest
from django.urls import reverse

from apps.conversations.models import Citation, Feedback, Turn
from tests.conversations.test_keeping import add_turn, handbook_file, talk  # noqa: F401 (fixtures)
from tests.vendor import Reply


@pytest.fixture
def turn(talk):  # noqa: F811
    return talk.turns.get(number=1)


def rate(client, turn, **data):
    return client.post(reverse("conversations:rate-turn", args=["acme", turn.pk]), data, HTTP_HX_REQUEST="true")


def test_a_thumb_with_its_reason_is_kept_changed_and_taken_back(client, ann, turn):
    client.force_login(ann)
    assert "What is wrong?" in rate(client, turn, verdict="bad").content.decode()
    rate(client, turn, verdict="bad", reason="source", comment=" page 4\x00 ", kept="1")
    found = Feedback.objects.get()
    assert (found.good, found.reason, found.comment, found.kept) == (False, "source", "page 4", True)
    page = client.get(f"/acme/conversations/{turn.conversation_id}/").content.decode()
    assert "The source does not say so" in page
    rate(client, turn, verdict="good")
    found.refresh_from_db()
    assert (found.good, found.reason, found.kept) == (True, "", False)
    rate(client, turn, verdict="none")
    assert not Feedback.objects.exists()


def test_a_reason_is_one_of_the_known_and_a_comment_has_an_end(client, ann, turn):
    client.force_login(ann)
    assert rate(client, turn, verdict="bad", reason="boring").status_code == 422
    assert rate(client, turn, verdict="bad", comment="x" * 4001).status_code == 422
    assert not Feedback.objects.exists()


def suggestions(client, turn):
    page = client.get(reverse("conversations:suggest-questions", args=["acme", turn.pk]))
    return page.context["suggestions"]


def test_a_model_is_asked_once_and_its_lines_are_cleaned(client, ann, turn, vendor, settings):
    settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY, settings.CHAT_MODEL = vendor.url, "k", "m"
    settings.FAST_MODEL = "m"
    vendor.script(
        [Reply("1. Who approves it?\n- “What about trains?”\n\nWho approves it?\nWhich class?\n* Any more?")], to="chat"
    )
    client.force_login(ann)
    expected = ["Who approves it?", "What about trains?", "Any more?"]
    assert suggestions(client, turn) == expected
    assert suggestions(client, turn) == expected
    assert len(vendor.requests) == 1
    assert "Economy" in str(vendor.requests[0])


def test_a_model_that_fails_costs_nothing_but_the_suggestions(client, ann, turn, vendor, settings):
    settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY, settings.CHAT_MODEL = vendor.url, "k", "m"
    vendor.script([Reply(status=400)], to="chat")
    client.force_login(ann)
    assert suggestions(client, turn) == []
    turn.refresh_from_db()
    assert turn.suggestions == []


def test_without_a_model_they_come_from_headings_that_were_found_and_not_used(client, ann, turn, handbook):
    Citation.objects.filter(n=1).update(cited=False)
    client.force_login(ann)
    assert suggestions(client, turn) == ["What do the documents say about “How often”?"]


def test_none_are_made_or_shown_of_what_may_not_be_read_any_more(client, ann, bea, acme, turn, handbook):
    """Neither those that were kept, nor new ones: no model is told the answer again."""
    from apps.workspaces.models import Membership

    Citation.objects.filter(n=1).update(cited=False)
    client.force_login(ann)
    kept = suggestions(client, turn)
    handbook.restricted = True
    handbook.save()
    Membership.objects.filter(user=ann).update(role="member")
    withdrawn = suggestions(client, turn)
    Turn.objects.filter(pk=turn.pk).update(suggestions=None)
    assert (len(kept), withdrawn, suggestions(client, turn)) == (1, [], [])
    turn.refresh_from_db()
    assert turn.suggestions is None
    Membership.objects.filter(user=ann).update(role="owner")
    assert suggestions(client, turn) == kept


@pytest.mark.parametrize(("question", "expected"), [("How?", "How often"), ("怎么做？", "多久一次")])
def test_headings_are_in_the_questions_language_where_there_are_such(client, ann, turn, handbook, question, expected):
    found = Citation.objects.get(n=1)
    Turn.objects.filter(pk=turn.pk).update(question=question)
    Citation.objects.filter(n=1).update(cited=False)
    found.pk, found.n, found.cited, found.heading = None, 9, False, "指南 > 多久一次"
    found.save()
    client.force_login(ann)
    (only,) = suggestions(client, turn)
    assert expected in only


def test_none_are_made_in_another_language_because_those_of_ones_own_are_used(client, ann, turn, handbook):
    Turn.objects.filter(pk=turn.pk).update(question="How?")
    other = Citation.objects.get(n=1)
    other.pk, other.n, other.cited, other.heading = None, 9, False, "指南 > 多久一次"
    other.save()
    client.force_login(ann)
    assert suggestions(client, turn) == []


def test_nothing_is_learned_of_documents_that_may_not_be_read(client, ann, turn, handbook):
    from apps.knowledge.models import Document

    Citation.objects.filter(n=1).update(cited=False)
    Document.objects.update(deleted_at="2026-01-01T00:00:00Z")
    client.force_login(ann)
    assert suggestions(client, turn) == []


def test_a_turn_that_did_not_succeed_has_none(client, ann, turn):
    Turn.objects.filter(pk=turn.pk).update(status="stopped")
    client.force_login(ann)
    assert suggestions(client, turn) == []
    turn.refresh_from_db()
    assert turn.suggestions is None
