"""Every door of every kind of row says what a plain model says, in random worlds and after changes of them.

``RIGHTS_DRAWS`` sets how many worlds are drawn (``make fuzz``: 10,000), ``RIGHTS_SEED`` where to begin.
"""

import os
from uuid import UUID

import pytest
from django.db import transaction
from psycopg import ClientCursor
from psycopg.sql import Literal

from apps.agents.models import Agent
from apps.conversations.models import Conversation
from apps.knowledge.models import Chunk, Document, Folder, KnowledgeBase
from apps.models.models import ModelConfig
from apps.workspaces.doors import DoorQuery
from apps.workspaces.models import Workspace
from apps.workspaces.principals import IDS
from tests.rights.world import World

DRAWS = int(os.environ.get("RIGHTS_DRAWS", "500"))
SEED = int(os.environ.get("RIGHTS_SEED", "0"))
BATCHES = max(4, DRAWS // 250)
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


class Prepared:
    """All doors as one statement, prepared once for each shape of Principal: only its ids travel."""

    def __init__(self, cursor):
        self.cursor, self.names = cursor, {}
        cursor.execute("DEALLOCATE ALL")  # those of an earlier test on this connection
        cursor.execute("SET plan_cache_mode = force_generic_plan")
        cursor.execute("SET enable_nestloop = off")  # no statistics: the rows are of this transaction

    def found_by(self, who):
        """Return what each door shows."""
        shape = who.shape()
        if shape not in self.names:
            self.names[shape] = f"doors_{len(self.names)}"
            self._prepare(self.names[shape], who.stand_in())
        ids = [getattr(who, name) for name in IDS]
        found = {key: set() for key in QUERIES}
        keys = list(QUERIES)
        for number, pk in self.cursor.execute(f"EXECUTE {self.names[shape]} (%s, %s, %s, %s, %s)", ids):
            found[keys[number]].add(pk)
        return found

    def _prepare(self, name, stand_in):
        places = {getattr(stand_in, one): f"${n}" for n, one in enumerate(IDS, 1) if getattr(stand_in, one)}
        parts = []
        for number, query in enumerate(QUERIES.values()):
            sql, values = query.statement(stand_in)
            if "FALSE" not in sql:
                given = tuple(
                    places[value] if isinstance(value, UUID) else Literal(value).as_string(self.cursor)
                    for value in values
                )
                parts.append(f"SELECT {number}, q.* FROM ({sql % given}) q")
        parts = parts or ["SELECT 0, NULL::uuid WHERE 1 = 0"]
        self.cursor.execute(f"PREPARE {name} (uuid, uuid, uuid, uuid, uuid) AS {' UNION ALL '.join(parts)}")


def wanted_by(who, world):
    """Return what each door should show, by the plain rules."""
    facts = world.facts
    wanted = {(kind, act): facts.seen(who, kind, act) for kind, act in DOORS}
    wanted["chunk", "read"] = wanted["document", "read"]
    wanted["talk", "read"] = facts.own_talks(who)
    wanted["workspace", "read"] = places(world, who)
    return wanted


def differences(world, doors, *, compiled_anew):
    """Return where a door and the rules do not agree."""
    for who in world.principals:
        wanted, found = wanted_by(who, world), doors.found_by(who)
        yield from ((key, who, found[key] ^ wanted[key]) for key in QUERIES if found[key] != wanted[key])
        if compiled_anew:  # the queryset itself, without what DoorQuery keeps of it; some door for each
            key = world.rng.choice(list(DOORS))
            if (now := {row["pk"] for row in DOORS[key](who)}) != wanted[key]:
                yield "uncompiled", key, who, now ^ wanted[key]


def places(world, who):
    if who.kind == "widget":
        return {who.workspace_id}
    return {workspace.pk for workspace in world.workspaces if world.facts.role(who, workspace.pk)}


@pytest.mark.django_db
@pytest.mark.parametrize("batch", range(BATCHES))
def test_doors_say_what_the_rules_say(batch):
    from django.db import connection

    connection.ensure_connection()
    with ClientCursor(connection.connection) as cursor:
        doors = Prepared(cursor)
        for seed in range(SEED + batch * DRAWS // BATCHES, SEED + (batch + 1) * DRAWS // BATCHES):
            with transaction.atomic():
                world, done = World(seed), []
                for changes in (0, CHANGES):
                    done += [world.change() for _ in range(changes)]
                    found = list(differences(world, doors, compiled_anew=seed % 50 == 7))
                    assert found == [], f"RIGHTS_SEED={seed}, after {done}"
                transaction.set_rollback(True)
