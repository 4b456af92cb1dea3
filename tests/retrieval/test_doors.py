"""No leg, reading function, tool, page, endpoint or command ever shows a row that its reader may not see."""

import asyncio
import random
from dataclasses import dataclass, field
from uuid import uuid4

import pytest
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.core.management import CommandError, call_command
from django.urls import reverse

from apps.agents.bindings import bind
from apps.agents.context import TurnRecord
from apps.agents.powers import context_for
from apps.agents.tools import catalog
from apps.agents.turn import AskOptions, TurnRequest
from apps.common.database import wait_for
from apps.common.errors import KnowSphereError, NotFound
from apps.interop.mcp_tools import Caller, search_knowledge
from apps.interop.mcp_tools import Search as McpSearch
from apps.knowledge.models import Chunk, Document, KnowledgeBase
from apps.knowledge.retrieval.filters import Condition, Filters
from apps.knowledge.retrieval.reading import document_info, grep_chunks, list_chunks
from apps.knowledge.retrieval.search import search
from apps.knowledge.services import create_folder, delete_document, delete_knowledge_base, grant, revoke
from apps.models.models import ModelConfig
from apps.workspaces.models import Membership, Role, User
from apps.workspaces.principals import Principal
from apps.workspaces.services import create_workspace, set_membership
from apps.workspaces.services.sharing import Subject, share
from tests.agents.fakes import Sink
from tests.retrieval.conftest import MODEL

pytestmark = pytest.mark.django_db(transaction=True)


WORLDS = 4
YEARS = (1999, 2024)


@dataclass
class World:
    """Random tenants and people, and by person what each may read, with what filters go by."""

    people: list = field(default_factory=list)
    workspaces: list = field(default_factory=list)
    bases: list = field(default_factory=list)
    readable: dict = field(default_factory=dict)  # person -> text -> (tags, folder, year)


def shut(rng, row, people, owner):
    """Restrict a row, or not; return to whom it is open besides its managers, None for everybody."""
    if rng.random() < 0.6:
        return None
    type(row).objects.filter(pk=row.pk).update(restricted=True)
    chosen = [person for person in people if rng.random() < 0.5]
    for person in chosen:
        share(row=row, subject=Subject(user=person), level="read", actor=owner)
    return {person.pk for person in chosen}


def drawn(seed, make_base, add_passages):
    """Draw tenants of people who came and went, bases of two models, grants, shut folders and documents, deletions."""
    rng = random.Random(seed)
    world = World([User.objects.create_user(f"p{number}-{seed}@example.com") for number in range(6)])
    world.readable = {person.pk: {} for person in world.people}
    for place in range(3):
        owner, *others = rng.sample(world.people, 4)
        workspace = create_workspace(name=f"Tenant {seed}-{place}", owner=owner)
        ModelConfig.objects.create(
            workspace=workspace, kind="embedding", name="other", base_url=settings.EMBEDDING_BASE_URL
        )
        for other in others:
            set_membership(workspace=workspace, user=other, role=rng.choice([Role.ADMIN, Role.MEMBER, Role.VIEWER]))
        world.workspaces.append(workspace)
        drawn_bases, levels = [], {}
        for number in range(3):
            model = rng.choice([MODEL, "other"])
            base = make_base(
                workspace, f"Base {number}", restricted=rng.random() < 0.6, embedding_model=f"openai_compatible:{model}"
            )
            for person in others:
                if rng.random() < 0.4:
                    levels[base.pk, person.pk] = rng.choice(["read", "manage"])
                    grant(knowledge_base=base, user=person, level=levels[base.pk, person.pk], actor=owner)
            drawn_bases.append(base)
        for person in others:  # after the grants, which then count no more
            if rng.random() < 0.3:
                Membership.objects.filter(workspace=workspace, user=person).delete()
        roles = dict(Membership.objects.filter(workspace=workspace).values_list("user_id", "role"))
        here = [person for person in others if person.pk in roles]
        for base in drawn_bases:
            gone = rng.random() < 0.2
            folder = create_folder(knowledge_base=base, name="Folder", actor=owner)
            inside = shut(rng, folder, here, owner)
            for part in range(2):
                text = f"Secret canary of {workspace.name}, {base.name}, part {part}."
                document, _ = add_passages(base, (text, [f"First {text}", f"Second {text}"]))
                document.tags = rng.choice([[], ["red"], ["red", "blue"]])
                document.generation = rng.randint(1, 4)  # it was indexed anew, and may be again:
                document.status = rng.choice(["indexed", "parsing", "error_indexing"])
                document.folder = rng.choice([None, folder])
                document.attributes = {"year": rng.choice(YEARS)}
                document.save()
                own = shut(rng, document, here, owner)
                if rng.random() < 0.2:
                    delete_document(document=document, actor=owner)
                    continue
                for person, role in roles.items():
                    level = levels.get((base.pk, person))
                    manages = role in (Role.OWNER, Role.ADMIN) or level == "manage"
                    opened = not base.restricted or level
                    let_in = (own is None or person in own) and (
                        document.folder is None or inside is None or person in inside
                    )
                    if not gone and (manages or (opened and let_in)):
                        world.readable[person][text] = (document.tags, document.folder_id, document.attributes["year"])
            if gone:
                delete_knowledge_base(knowledge_base=base, actor=owner)
        world.bases += drawn_bases
    return world


@pytest.fixture
def worlds(make_base, add_passages, settings, vendor):
    settings.OUTBOUND_ALLOW = [vendor.url.removeprefix("http://").partition("/")[0]]
    return [drawn(seed, make_base, add_passages) for seed in range(WORLDS)]


@pytest.fixture
def everything(worlds):
    """All ids there are, in every tenant: of bases, documents and chunks."""
    kinds = (KnowledgeBase, Document, Chunk)
    return [list(kind.objects.order_by("pk").values_list("pk", flat=True)) for kind in kinds]


@pytest.fixture
def text_of(everything):
    """The passage that each chunk is, or is a part of, by its id."""
    return {chunk.pk: (chunk.parent or chunk).text for chunk in Chunk.objects.select_related("parent")}


def narrowed(rng, mine):
    """Draw a filter; return it with what of ``mine`` fits."""
    folders = sorted({folder for _tags, folder, _year in mine.values() if folder}, key=str)
    match rng.choice(["tag", "year", "folder"]):
        case "folder" if folders:
            folder = rng.choice(folders)
            return Filters(folders=(folder,)), {text for text, facts in mine.items() if facts[1] == folder}
        case "year":
            year = Condition(field="year", op="gte", value=2000)
            return Filters(metadata=(year,)), {text for text, facts in mine.items() if facts[2] >= 2000}
    return Filters(tags=("red",)), {text for text, facts in mine.items() if "red" in facts[0]}


async def test_nobody_finds_what_is_not_theirs(worlds, everything, text_of):
    bases, documents, chunks = everything
    rng = random.Random(7)
    drawn_people = [(person, world.readable[person.pk]) for world in worlds for person in world.people]
    for person, facts in [*drawn_people, (AnonymousUser(), {})]:
        mine = set(facts)
        found = await search(person, "secret canary", knowledge_bases=bases, top_k=100, watched=rng.choice(chunks))
        assert {passage.text for passage in found.passages} == mine
        one, fitting = narrowed(rng, facts)
        filtered = await search(person, "secret canary", knowledge_bases=bases, top_k=100, filters=[one])
        assert {passage.text for passage in filtered.passages} == fitting
        query = rng.choice(
            ["的", "%", "5", "5G 网", "canry"]
        )  # questions that take the other branches of the lexical leg
        odd = await search(person, query, knowledge_bases=rng.sample(bases, 20), top_k=3, rerank=rng.random() < 0.5)
        for result in (found, filtered, odd):  # whatever any leg brought, kept or lost
            assert {text_of[trace.chunk_id] for trace in result.traces} <= mine
        assert {
            passage.text for passage in await grep_chunks(person, "canary", knowledge_bases=bases, limit=50)
        } == mine
        some = rng.sample(chunks, 50)
        assert {passage.text for passage in await list_chunks(person, chunk_ids=some)} == mine & {
            text_of[pk] for pk in some
        }
        for document in rng.sample(documents, 4):
            assert {passage.text for passage in await list_chunks(person, document_id=document)} <= mine
        assert len(await document_info(person, document_ids=documents, limit=99)) == len(mine)


def by_tools(person, workspace, bases, documents, chunks):
    """Return what the agent's tools show a person who asks for everything there is."""
    asked = TurnRequest(
        uuid4(), uuid4(), workspace.pk, Principal.person(person.pk), None, "q", AskOptions(tuple(bases)), list
    )
    try:
        bound = wait_for(bind, asked)
    except NotFound:
        return ""
    context = context_for(asked, bound, events=Sink(), stop=asyncio.Event(), rebuilt=None, record=TurnRecord())
    shown = []
    for name, arguments in (
        ("doc_retrieval", {"query": "secret canary", "top_k": 10}),
        ("grep_chunks", {"pattern": "Secret c.nary"}),
        ("list_chunks", {"ids": [str(pk) for pk in chunks]}),
        *(("list_chunks", {"document": str(pk)}) for pk in documents),
        ("get_document_info", {"documents": [str(pk) for pk in documents]}),
    ):
        tool = catalog.TOOLS.get(name)
        try:
            shown.append(wait_for(tool.run, context, tool.arguments.model_validate(arguments)).text)
        except KnowSphereError:
            continue
    return "\n".join(shown)


def test_no_tool_page_or_endpoint_shows_what_is_not_theirs(client, worlds, everything, text_of):
    bases, documents, chunks = everything
    every = set(text_of.values())
    rng = random.Random(8)
    for world in worlds:
        for person in rng.sample(world.people, 2):
            client.force_login(person)
            shown = []
            for workspace in rng.sample(world.workspaces, 2):
                places = [
                    reverse(f"knowledge:{name}", args=[workspace.slug]) for name in ("search-documents", "try-search")
                ]
                shown += [client.get(place, {"q": "secret canary", "watch": rng.choice(chunks)}) for place in places]
            addresses = [f"documents/{pk}/chunks" for pk in rng.sample(documents, 2)]
            addresses += [f"chunks/{pk}" for pk in rng.sample(chunks, 2)]
            shown += [client.get(f"/api/v1/{address}") for address in addresses]
            asked = {"query": "canary", "top_k": 50}
            shown += [
                client.post(f"/api/v1/knowledge-bases/{pk}/search", asked, "application/json")
                for pk in rng.sample([base.pk for base in world.bases], 3)
            ]
            seen = "\n".join(page.content.decode() for page in shown)
            workspace = rng.choice(world.workspaces)
            seen += by_tools(person, workspace, bases, rng.sample(documents, 3), rng.sample(chunks, 10))
            caller = Caller(person, workspace.pk)
            seen += wait_for(search_knowledge, caller, McpSearch(query="secret canary", top_k=30)).text
            theirs = every - world.readable[person.pk].keys()
            assert not [text for text in theirs if text.removeprefix("Secret canary") in seen]


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
