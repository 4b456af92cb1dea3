"""Share links: who may follow one, what of the sources they learn, and that a link ends."""

import re

import pytest
from django.urls import reverse

from apps.conversations.models import Citation, Share
from tests.conversations.test_keeping import add_turn, handbook_file, talk  # noqa: F401 (fixtures)


@pytest.fixture
def share(client, ann, talk):  # noqa: F811
    """Share as ann; return the link's path."""

    def share(*, outside=False, **data):
        client.force_login(ann)
        there = reverse("conversations:share-conversation", args=["acme", talk.pk])
        answer = client.post(there, {**data, **({"outside": "on"} if outside else {})}, HTTP_HX_REQUEST="true")
        client.logout()
        link = re.search(r"/shared/[\w-]+/", answer.content.decode())
        return link[0] if link else answer

    return share


def follow(client, link, user=None):
    if user:
        client.force_login(user)
    else:
        client.logout()
    return client.get(link)


def test_a_link_inside_is_for_the_workspace(client, share, ann, bea, mal, talk):  # noqa: F811
    link = share()
    assert follow(client, link)["Location"].startswith("/accounts/login/")
    assert follow(client, link, mal).status_code == 404
    page = follow(client, link, bea).content.decode()
    assert "Economy" in page
    assert "Travel policy.pdf" in page
    assert "/documents/" in page
    assert "[[c9]]" not in page
    assert follow(client, "/shared/" + "x" * 43 + "/", bea).status_code == 404
    assert follow(client, "/shared/" + "x" * 43 + "/")["Location"].startswith("/accounts/login/")


def test_a_link_outside_names_open_documents_and_shows_no_passage(client, share, mal, handbook):
    link = share(outside=True)
    for reader in (None, mal):
        answer = follow(client, link, reader)
        page = answer.content.decode()
        assert answer["X-Robots-Tag"] == "noindex, nofollow"
        assert "Travel policy.pdf" in page
        assert "/documents/" not in page
        assert "Twice a year" not in page
    handbook.restricted = True
    handbook.save()
    page = follow(client, link).content.decode()
    assert "Travel policy" not in page
    assert "How often" not in page
    assert "Not shared" in page
    assert "Economy" in page


def test_a_link_outside_names_nothing_that_is_restricted_within_an_open_base(client, share, ann, handbook_file):  # noqa: F811
    """The owner may read it, the whole workspace may not: least of all the whole net."""
    from apps.knowledge.services import create_folder

    link = share(outside=True)
    above = create_folder(knowledge_base=handbook_file.knowledge_base, name="Board", actor=ann)
    folder = create_folder(knowledge_base=handbook_file.knowledge_base, name="2026", actor=ann, parent=above)
    handbook_file.folder = folder
    named = []
    for shut in (None, handbook_file, folder, above):
        for row in (handbook_file, folder, above):
            row.restricted = row is shut
            row.save()
        named.append("Travel policy" in follow(client, link).content.decode())
    assert named == [True, False, False, False]


def test_in_the_workspace_a_reader_learns_what_their_rights_allow(client, share, bea, ann, handbook):
    from apps.knowledge.services import grant

    link = share()
    handbook.restricted = True
    handbook.save()
    assert "Travel policy" not in follow(client, link, bea).content.decode()
    assert "Travel policy.pdf" in follow(client, link, ann).content.decode()
    grant(knowledge_base=handbook, user=bea, level="read", actor=ann)
    assert "Travel policy.pdf" in follow(client, link, bea).content.decode()


def test_a_link_shows_what_was_there_when_it_was_made(client, share, bea, talk):  # noqa: F811
    last = talk.turns.get(number=3)
    link = share(turn=str(last.pk))
    add_turn(talk, "A secret question", "A secret answer", parent=last)
    assert "secret" not in follow(client, link, bea).content.decode()
    assert share() == link
    assert "A secret answer" in follow(client, link, bea).content.decode()


def test_a_link_ends_when_it_is_taken_back_narrowed_or_its_maker_leaves(client, share, ann, bea, talk):  # noqa: F811
    from apps.workspaces.models import Membership, Role
    from apps.workspaces.services import set_membership

    outside = share(outside=True)
    assert follow(client, outside).status_code == 200
    inside = share()
    assert inside != outside
    assert follow(client, outside)["Location"].startswith("/accounts/login/")
    set_membership(workspace=talk.workspace, user=bea, role=Role.OWNER)
    Membership.objects.filter(user=ann).delete()
    assert follow(client, inside, bea).status_code == 404
    set_membership(workspace=talk.workspace, user=ann, role=Role.OWNER)
    assert follow(client, inside, bea).status_code == 200
    client.force_login(ann)
    client.post(reverse("conversations:unshare-conversation", args=["acme", talk.pk]))
    assert follow(client, inside, bea).status_code == 404
    again = share()
    assert again not in (inside, outside)
    client.force_login(ann)
    client.post(reverse("conversations:delete-conversation", args=["acme", talk.pk]))
    assert follow(client, again, bea).status_code == 404


def test_a_viewer_shares_inside_only(client, bea, acme):
    from apps.conversations.models import Conversation

    mine = Conversation.objects.create(workspace=acme, owner=bea, title="Mine")
    turn = add_turn(mine, "?", "!")
    client.force_login(bea)
    there = reverse("conversations:share-conversation", args=["acme", mine.pk])
    assert client.post(there, {"turn": str(turn.pk), "outside": "on"}).status_code == 403
    assert not Share.objects.exists()
    assert client.post(there, {"turn": str(turn.pk)}).status_code == 302
    assert Share.objects.get().audience == "workspace"


def test_hostile_text_is_text(client, share, ann, talk):  # noqa: F811
    from apps.conversations.models import Message

    evil = "<img src=x onerror=1> [x](javascript:1) <script>1</script>[[c1]]"
    Message.objects.filter(turn__number=1, role="assistant").update(text=evil)
    Citation.objects.update(document="<img src=x onerror=1>", heading="<svg onload=1>")
    page = follow(client, share(outside=True)).content.decode()
    assert not re.search(r"<(?:img|svg onload|script>)", page.split("<main")[1])
    assert 'href="javascript' not in page
