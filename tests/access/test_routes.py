"""Who may reach what: each page by each persona, and what pages must refuse whoever asks."""

from io import BytesIO
from zipfile import ZipFile

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction
from django.test import Client
from django.urls import reverse

from apps.common.errors import NotFound
from tests.access.personas import PERSONAS
from tests.access.tables import ACCOUNT_ROUTES, EXPECTED, RESTRICTED, TABLES, WITH_ARGUMENTS
from tests.access.world import routes

STRANGERS = ("nobody", "other", "key", "widget", "operator")  # at a page; a key and a token open none
OF_ACME = ("plan.md", "# Plan", "two canteens", "notebook", "Handbook", "Expert")


def undone(ask, path, *given):
    """Return an answer; whatever the request changed is undone."""
    with transaction.atomic():
        answer = ask(path, *given)
        transaction.set_rollback(True)
    return answer


def whole(answer):
    """Return the parts of a streamed answer."""

    async def parts():
        return [part async for part in answer]

    return async_to_sync(parts)() if answer.is_async else list(answer)


def sent(answer):
    """Return the bytes of an answer, streamed or not."""
    return b"".join(whole(answer)) if answer.streaming else answer.content


def names_acme(data):
    """Whether anything of acme is in what was sent, or in the files of an archive that it is."""
    if data.startswith(b"PK"):
        with ZipFile(BytesIO(data)) as archive:
            data = b"\n".join([*map(str.encode, archive.namelist()), *map(archive.read, archive.namelist())])
    return any(words.encode() in data for words in OF_ACME)


def tells(answer):
    """Whether anything of acme is in an answer; of what is streamed, test_exports.py asks it with committed rows."""
    try:
        return names_acme(sent(answer))
    except NotFound:  # streams ask for the right as they go, and their threads do not see this test's own rows
        return False


def test_every_route_is_in_the_table():
    known = {name for name, _ in routes()}
    assert {name for name in known if ":" not in name and "_" in name} - {"set_language"} == ACCOUNT_ROUTES
    # in tests/api/tables.py, and what visitors of widgets load in tests/widgets/test_public.py
    elsewhere = {name for name in known if name.startswith(("api:", "openai:", "widget:"))}
    assert known - ACCOUNT_ROUTES - elsewhere == {route for _, route in EXPECTED}


@pytest.mark.parametrize("table", TABLES)
def test_answers_as_the_table_says(world, table):
    wrong, told = [], []
    for persona in PERSONAS:
        client = world.enter(persona)
        for (method, route), expected in TABLES[table].items():
            path = world.path(route)
            answer = undone(getattr(client, method), path)
            if answer.status_code != expected[persona]:
                wrong.append((persona, method, route, answer.status_code, expected[persona]))
            if persona in STRANGERS and tells(answer):
                told.append((persona, method, route))
    assert (wrong, told) == ([], [])


def test_a_restricted_base_is_seen_by_those_it_is_shared_with(world):
    from apps.knowledge.services import grant

    world.handbook.restricted = True
    world.handbook.save()
    wrong = []
    for level, status in ((None, 404), ("read", 200), ("manage", 200)):
        world.handbook.shares.filter(user=world.bea).delete()
        if level:
            grant(knowledge_base=world.handbook, user=world.bea, level=level, actor=world.ann)
        client = world.enter("viewer")
        for route in RESTRICTED:
            if (found := client.get(world.path(route)).status_code) != status:
                wrong.append((level, route, found))
    department = world.enter("department")
    wrong += [("department", route) for route in RESTRICTED if department.get(world.path(route)).status_code != 200]
    assert wrong == []


def test_a_source_is_shown_only_while_its_document_may_be_read(world):
    from apps.workspaces.models import Membership

    client, path = world.enter("owner"), world.path("conversations:show-source")
    assert "Plan" in client.get(path).content.decode()
    others = [world.path(f"conversations:{name}") for name in ("show-conversation", "show-turn")]
    assert ["Part one" in client.get(other).content.decode() for other in others] == [True, True]
    world.handbook.restricted = True
    world.handbook.save()
    Membership.objects.filter(user=world.ann).update(role="viewer")
    page = client.get(path).content.decode()
    assert "is not shared with you any more" in page
    assert "# Plan" not in page
    assert [other for other in (path, *others) if "Part one" in client.get(other).content.decode()] == []


def test_a_change_wants_a_token_of_the_page(world):
    client = Client(enforce_csrf_checks=True)
    client.force_login(world.ann)
    posts = [route for method, route in EXPECTED if method == "post"]
    assert [route for route in posts if client.post(world.path(route)).status_code != 403] == []


def test_signing_in_and_out_wants_a_token_of_the_page(ann):
    wrong = []
    for signed_in in (False, True):
        client = Client(enforce_csrf_checks=True)
        if signed_in:
            client.force_login(ann)
        for route in ACCOUNT_ROUTES - WITH_ARGUMENTS:
            if (status := client.post(reverse(route)).status_code) not in (403, 405):
                wrong.append((signed_in, route, status))
    assert wrong == []


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example/", "\\\\evil.example", "javascript:alert(1)"]
)
def test_nobody_is_led_to_another_site(client, ann, target):
    login = client.post("/accounts/login/", {"login": ann.email, "password": "correct horse battery", "next": target})
    assert login.status_code == 302
    language = client.post("/i18n/setlang/", {"language": "en", "next": target}, headers={"referer": target})
    out = client.post("/accounts/logout/", {"next": target})
    for answer in (login, language, out):
        assert answer["Location"].startswith("/")
        assert not answer["Location"].startswith(("//", "/\\"))


def test_a_question_in_a_base_of_others_leaves_nothing(client, ann, acme, mal):
    from apps.conversations.models import Conversation
    from apps.knowledge.models import KnowledgeBase

    theirs = KnowledgeBase.objects.create(workspace=mal.workspaces.get(), name="Secret")
    client.force_login(ann)
    answer = client.post(reverse("conversations:start-conversation", args=[acme.slug]), {"text": "x", "kb": theirs.pk})
    assert answer.status_code == 404
    assert not Conversation.objects.exists()


def test_ids_of_one_workspace_lead_nowhere_under_the_address_of_another(world):
    """mal goes through every page of their own workspace with ids of acme: each looks like an id of nobody."""
    client, own = world.enter("other"), world.mal.workspaces.get()
    asked = {"q": "plan", "kb": world.handbook.pk, "chunk": world.things.chunk_id, "row": world.things.document_id}
    wrong, told = [], []
    for method, route in EXPECTED:
        names = set(world.known[route])
        if "slug" not in names:
            continue
        path = world.path(route, slug=own.slug)
        answer = undone(getattr(client, method), path)
        more = undone(client.get, path, asked) if method == "get" else answer
        if names - {"slug"} and answer.status_code != 404:
            wrong.append((method, route, answer.status_code))
        if tells(answer) or tells(more):
            told.append((method, route))
    assert (wrong, told) == ([], [])
