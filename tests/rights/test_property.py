"""Every door of every kind of row says what a plain model says, in random worlds and after every change of them.

``RIGHTS_DRAWS`` sets how many worlds are drawn (``make fuzz``: 10,000), ``RIGHTS_SEED`` where to begin.
"""

import os
from contextlib import contextmanager

import pytest
from django.db import transaction
from psycopg import Cursor

from apps.agents.models import Agent
from apps.conversations.models import Conversation
from apps.knowledge.models import Chunk, Document, Folder, KnowledgeBase
from apps.models.models import ModelConfig
from apps.workspaces.doors import DoorQuery
from apps.workspaces.models import Workspace
from tests.rights.world import World

DRAWS = int(os.environ.get("RIGHTS_DRAWS", "500"))
SEED = int(os.environ.get("RIGHTS_SEED", "0"))
BATCHES = 10
CHANGES = 2  # of each world

KINDS = {"base": KnowledgeBase, "folder": Folder, "document": Document, "agent": Agent, "model": ModelConfig}


def door(model, name):
    return lambda who: getattr(model.objects, name)(who).order_by().values("pk")


DOORS = {
    **{(kind, "read"): door(model, "visible_to") for kind, model in KINDS.items()},
    **{(kind, "manage"): door(model, "editable_by") for kind, model in KINDS.items()},
}
QUERIES = {
    **{key: DoorQuery(build) for key, build in DOORS.items()},
    ("chunk", "read"): DoorQuery(lambda who: Chunk.objects.visible_to(who).order_by().values("document")),
    ("talk", "read"): DoorQuery(door(Conversation, "visible_to")),
    ("workspace", "read"): DoorQuery(door(Workspace, "visible_to")),
}


def found_by(who, cursor):
    """Return what each door shows, all asked in one statement."""
    parts, parameters = [], []
    for number, query in enumerate(QUERIES.values()):
        sql, values = query.statement(who)
        parts.append(f"SELECT {number}, q.* FROM ({sql}) q" if "FALSE" not in sql else f"SELECT {number}, NULL::uuid")
        parameters += values
    cursor.execute(" UNION ALL ".join(parts), parameters)
    found = {key: set() for key in QUERIES}
    keys = list(QUERIES)
    for number, pk in cursor:
        found[keys[number]] |= {pk} - {None}
    return found


def wanted_by(who, world):
    """Return what each door should show, by the plain rules."""
    facts = world.facts
    wanted = {(kind, act): facts.seen(who, kind, act) for kind, act in DOORS}
    wanted["chunk", "read"] = wanted["document", "read"]
    wanted["talk", "read"] = facts.own_talks(who)
    wanted["workspace", "read"] = places(world, who)
    return wanted


@contextmanager
def prepared(connection):
    """Lend a cursor that lets the server keep each statement's plan: a door's statement is the same each time."""
    connection.ensure_connection()
    raw = connection.connection
    before, raw.prepare_threshold = raw.prepare_threshold, 0
    with Cursor(raw) as cursor:
        cursor.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        yield cursor
    raw.prepare_threshold = before


def differences(world, cursor, *, compiled_anew):
    """Return where a door and the rules do not agree."""
    for who in world.principals:
        wanted, found = wanted_by(who, world), found_by(who, cursor)
        yield from ((key, who, found[key] ^ wanted[key]) for key in QUERIES if found[key] != wanted[key])
        if compiled_anew:
            for key, build in DOORS.items():
                if (now := {row["pk"] for row in build(who)}) != wanted[key]:
                    yield "uncompiled", key, who, now ^ wanted[key]


def places(world, who):
    if who.kind == "widget":
        return {who.workspace_id}
    return {workspace.pk for workspace in world.workspaces if world.facts.role(who, workspace.pk)}


@pytest.mark.django_db
@pytest.mark.parametrize("batch", range(BATCHES))
def test_doors_say_what_the_rules_say(batch):
    from django.db import connection

    for seed in range(SEED + batch * DRAWS // BATCHES, SEED + (batch + 1) * DRAWS // BATCHES):
        with transaction.atomic(), prepared(connection) as cursor:
            world, done = World(seed), []
            for step in range(CHANGES + 1):
                if step:
                    done.append(world.change())
                found = list(differences(world, cursor, compiled_anew=seed % 100 == 7))
                assert found == [], f"RIGHTS_SEED={seed}, after {done}"
            transaction.set_rollback(True)
