"""No leg, reading function or command ever shows a row that its reader may not see."""

import random

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.management import CommandError, call_command
from django.urls import reverse

from apps.knowledge.models import Chunk, Document
from apps.knowledge.retrieval.filters import Filters
from apps.knowledge.retrieval.reading import document_info, grep_chunks, list_chunks
from apps.knowledge.retrieval.search import search
from apps.knowledge.services import delete_document, delete_knowledge_base, grant, revoke
from apps.workspaces.models import Membership, Role, User
from apps.workspaces.services import create_workspace, set_membership
from apps.workspaces.services.sharing import Subject, share

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(params=range(3))
def world(request, make_base, add_passages):
    """Random tenants, people, bases, grants, departures and deletions; (people, bases, readable texts by person)."""
    rng = random.Random(request.param)
    people = [User.objects.create_user(f"p{number}@example.com") for number in range(6)]
    bases, readable, tags = [], {person.pk: set() for person in people}, {}
    for place in range(3):
        owner, *others = rng.sample(people, 4)
        workspace = create_workspace(name=f"Tenant {place}", owner=owner)
        for other in others:
            set_membership(workspace=workspace, user=other, role=rng.choice([Role.ADMIN, Role.MEMBER, Role.VIEWER]))
        here, shared, managing = [], {}, {}
        for number in range(3):
            base = make_base(workspace, f"Base {number}", restricted=rng.random() < 0.6)
            shared[base.pk] = {person.pk for person in others if rng.random() < 0.4}
            for person in others:
                if person.pk in shared[base.pk]:
                    level = rng.choice(["read", "manage"])
                    managing[base.pk, person.pk] = level == "manage"
                    grant(knowledge_base=base, user=person, level=level, actor=owner)
            here.append(base)
        for person in others:  # after the grants, which then count no more
            if rng.random() < 0.3:
                Membership.objects.filter(workspace=workspace, user=person).delete()
        roles = dict(Membership.objects.filter(workspace=workspace).values_list("user_id", "role"))
        for base in here:
            gone = rng.random() < 0.2
            for part in range(2):
                text = f"Secret canary of {workspace.name}, {base.name}, part {part}."
                document, _ = add_passages(base, (text, [f"First {text}", f"Second {text}"]))
                document.tags = rng.choice([[], ["red"], ["red", "blue"]])
                document.generation = rng.randint(1, 4)  # it was indexed anew, and may be again:
                document.status = rng.choice(["indexed", "parsing", "error_indexing"])
                document.restricted = rng.random() < 0.3
                document.save()
                own = {person.pk for person in others if person.pk in roles and rng.random() < 0.5}
                for person in others:
                    if document.restricted and person.pk in own:
                        share(row=document, subject=Subject(user=person), level="read", actor=owner)
                if rng.random() < 0.2:
                    delete_document(document=document, actor=owner)
                    continue
                for person, role in roles.items():
                    manager = role in (Role.OWNER, Role.ADMIN) or managing.get((base.pk, person))
                    if gone or (base.restricted and not manager and person not in shared[base.pk]):
                        continue
                    if not document.restricted or manager or person in own:
                        readable[person].add(text)
                        tags[text] = document.tags
            if gone:
                delete_knowledge_base(knowledge_base=base, actor=owner)
        bases += here
    return people, bases, readable, tags


@pytest.fixture
def everything(world):
    """All ids there are, in every tenant."""
    return list(Document.objects.values_list("pk", flat=True)), list(Chunk.objects.values_list("pk", flat=True))


def test_no_page_or_endpoint_shows_what_is_not_theirs(client, world, everything):
    people, bases, readable, _ = world
    for person in people:
        client.force_login(person)
        for workspace in {base.workspace for base in bases}:
            found = reverse("knowledge:search-documents", args=[workspace.slug])
            tried = reverse("knowledge:try-search", args=[workspace.slug])
            pages = [client.get(found, {"q": "secret canary"}), client.get(tried, {"q": "canary"})]
            pages += [client.get(tried, {"q": "canary", "watch": pk}) for pk in everything[1][:4]]
            shown = "".join(page.content.decode() for page in pages)
            theirs = {text for other in readable.values() for text in other} - readable[person.pk]
            assert not [text for text in theirs if text.removeprefix("Secret canary") in shown]
        for base in bases:
            answer = client.post(f"/api/v1/knowledge-bases/{base.pk}/search", {"query": "canary"}, "application/json")
            hits = answer.json().get("hits", [])
            assert {hit["text"] for hit in hits} <= readable[person.pk]


async def test_nobody_finds_what_is_not_theirs(world, everything):
    people, bases, readable, tags = world
    document_ids, chunk_ids = everything
    ids = [base.pk for base in bases]
    for person in [*people, AnonymousUser()]:
        mine = readable.get(person.pk, set())
        found = await search(person, "secret canary", knowledge_bases=ids, top_k=100)
        assert {passage.text for passage in found.passages} == mine
        red = Filters(tags=("red",))
        filtered = await search(person, "secret canary", knowledge_bases=ids, top_k=100, filters=[red])
        assert {passage.text for passage in filtered.passages} == {text for text in mine if "red" in tags[text]}
        for query in ("的", "%", "5"):  # questions that take the other branches of the lexical leg
            other = await search(person, query, knowledge_bases=ids, top_k=100)
            assert {passage.text for passage in other.passages} <= mine
        assert {passage.text for passage in await grep_chunks(person, "canary", knowledge_bases=ids, limit=50)} == mine
        assert {passage.text for passage in await list_chunks(person, chunk_ids=chunk_ids)} <= mine
        for document_id in document_ids:
            assert {passage.text for passage in await list_chunks(person, document_id=document_id)} <= mine
        assert len(await document_info(person, document_ids=document_ids, limit=99)) == len(mine)


@pytest.fixture
def secret(acme, ann, bea, make_base, add_passages):
    base = make_base(acme, "Secret", restricted=True)
    grant(knowledge_base=base, user=bea, level="read", actor=ann)
    add_passages(base, "The canary sings.")
    return base


async def test_a_grant_withdrawn_counts_at_the_next_call(ann, bea, secret, in_thread):
    before = await search(bea, "canary", knowledge_bases=[secret.pk])
    in_thread(revoke, knowledge_base=secret, user=bea, actor=ann)
    after = await search(bea, "canary", knowledge_bases=[secret.pk])
    assert (len(before.passages), len(after.passages), after.empty_reason) == (1, 0, "no_base")
    assert await grep_chunks(bea, "canary", knowledge_bases=[secret.pk]) == []
    assert await document_info(bea, knowledge_bases=[secret.pk]) == []


async def test_a_deleted_document_is_found_no_more(ann, secret, in_thread):
    in_thread(lambda: delete_document(document=Document.objects.get(), actor=ann))
    found = await search(ann, "canary", knowledge_bases=[secret.pk])
    assert found.passages == ()
    assert await grep_chunks(ann, "canary", knowledge_bases=[secret.pk]) == []


def test_the_command_reads_as_the_person_it_names(ann, bea, mal, secret, capsys):
    call_command("search", "canary", "--kb", "Secret", "--as", bea.email)
    assert "The canary sings." in capsys.readouterr().out
    with pytest.raises(CommandError):
        call_command("search", "canary", "--kb", "Secret", "--as", mal.email)
