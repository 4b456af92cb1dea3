"""The owner's side: settings, reach, transcripts, and an end that leaves nothing."""

import pytest
from django.urls import reverse
from django.utils import timezone

from apps.conversations.models import Conversation, Turn
from apps.knowledge.models import KnowledgeBase
from apps.models.models import Budget
from apps.widgets import services
from apps.widgets.models import Visitor, Widget
from apps.workspaces.principals import Principal

GOOD = {
    "name": "Shop", "enabled": "on", "origins": "https://Shop.example/\nhttps://*.shops.example", "title": "Ask",
    "greeting": "Hello", "starters": "One?\n\nTwo?", "color": "#1f3d36", "theme": "auto", "position": "end",
    "language": "auto", "sources": "names", "per_visitor_hour": "5", "per_address_hour": "6", "per_day": "7",
    "budget": "10000",
}  # fmt: skip


@pytest.fixture
def save(client, ann, widget):
    def save(**changes):
        client.force_login(ann)
        data = {**GOOD, "agent": widget.agent.pk, **changes}
        answer = client.post(reverse("widgets:change-widget", args=[widget.workspace.slug, widget.pk]), data)
        widget.refresh_from_db()
        return answer

    return save


def test_settings_are_saved_and_what_it_reads_is_what_was_chosen(save, widget, handbook, acme, ann):
    other = KnowledgeBase.objects.create(workspace=acme, name="Other", created_by=ann)
    assert save(knowledge_bases=[other.pk]).status_code == 302
    assert widget.origins == ["https://shop.example", "https://*.shops.example"]
    assert widget.starters == ["One?", "Two?"]
    assert (widget.per_visitor_hour, widget.per_day) == (5, 7)
    visitor = Visitor.objects.create(widget=widget, origin="https://shop.example")
    reads = KnowledgeBase.objects.visible_to(services.principal_of(widget, visitor))
    assert list(reads) == [other]
    assert Budget.objects.get(scope="widget", subject=widget.pk).amount == 10_000
    save(budget="")
    assert not Budget.objects.filter(scope="widget").exists()


@pytest.mark.parametrize(
    "wrong",
    [{"origins": "shop.example"}, {"origins": "https://a.example/path"}, {"color": "#ffffff"}, {"color": "red"},
     {"starters": "1\n2\n3\n4\n5"}, {"starters": "x" * 121}, {"per_day": "-1"}, {"name": ""}, {"theme": "pink"},
     {"knowledge_bases": ["00000000-0000-4000-8000-000000000000"]}, {"agent": "00000000-0000-4000-8000-000000000000"}],
)  # fmt: skip
def test_what_cannot_be_is_refused_and_changes_nothing(save, widget, wrong):
    assert save(**wrong).status_code == 422
    assert widget.origins == ["https://shop.example"]
    assert widget.name == "Shop"


def test_bases_of_others_cannot_be_opened_to_visitors(save, widget, mal):
    theirs = KnowledgeBase.objects.create(workspace=mal.workspaces.get(), name="Theirs", created_by=mal)
    assert save(knowledge_bases=[theirs.pk]).status_code == 422


def test_the_page_names_what_can_be_chosen(client, ann, widget, handbook):
    client.force_login(ann)
    page = client.get(reverse("widgets:show-widget", args=[widget.workspace.slug, widget.pk])).content.decode()
    assert "Handbook</span>" in page
    assert f">{widget.agent.name}</option>" in page
    assert "knowledge base " not in page.replace("knowledge base yet", "")
    assert "Before &lt;/body&gt;" in page


def test_two_widgets_read_apart(widget, acme, ann, handbook):
    other = services.create_widget(workspace=acme, actor=ann, name="Other")
    visitor = Visitor.objects.create(widget=other, origin="https://x.example")
    assert not KnowledgeBase.objects.visible_to(services.principal_of(other, visitor)).exists()


def test_transcripts_show_what_was_asked_to_the_owner_only(client, ann, bea, widget, visitor):
    talk = services.conversation_of(widget, visitor[0])
    Turn.objects.create(conversation=talk, number=1, client_id="a", status="succeeded", question="Where is <b>it</b>?")
    Conversation.objects.filter(pk=talk.pk).update(title="Where is it?")
    client.force_login(ann)
    pages = [
        reverse("widgets:list-transcripts", args=[widget.workspace.slug, widget.pk]),
        reverse("widgets:show-transcript", args=[widget.workspace.slug, widget.pk, talk.pk]),
    ]
    assert "Where is it?" in client.get(pages[0]).content.decode()
    assert "Where is &lt;b&gt;it&lt;/b&gt;?" in client.get(pages[1]).content.decode()
    assert not Conversation.objects.visible_to(ann).exists(), "a visitor's conversation is not the owner's own"
    client.force_login(bea)
    assert [client.get(page).status_code for page in pages] == [403, 403]


def test_a_deleted_widget_is_gone_with_all(widget, visitor, ann, handbook):
    talk = services.conversation_of(widget, visitor[0])
    principal = services.principal_of(widget, visitor[0])
    services.delete_widget(widget=widget, actor=ann)
    assert not Widget.objects.exists()
    assert not Visitor.objects.exists()
    assert not handbook.shares.exists()
    assert not Conversation.objects.visible_to(principal).exists()
    assert Conversation.objects.get(pk=talk.pk).deleted_at <= timezone.now()


def test_a_visitor_sees_their_own_conversation_alone(widget, visitor):
    own = services.conversation_of(widget, visitor[0])
    other = Visitor.objects.create(widget=widget, origin="https://shop.example")
    services.conversation_of(widget, other)
    mine = services.principal_of(widget, visitor[0])
    assert list(Conversation.objects.visible_to(mine)) == [own]
    elsewhere = Principal.widget(
        widget_id=widget.pk, workspace_id=own.pk, visitor_id=visitor[0].pk  # another workspace's id
    )  # fmt: skip
    assert not Conversation.objects.visible_to(elsewhere).exists()


def test_the_list_asks_as_much_for_many_as_for_one(client, ann, acme, widget, django_assert_max_num_queries):
    client.force_login(ann)
    page = reverse("widgets:list-widgets", args=[acme.slug])
    client.get(page)
    Widget.objects.bulk_create(Widget(workspace=acme, name=f"w{i}") for i in range(200))
    with django_assert_max_num_queries(8):
        client.get(page)
