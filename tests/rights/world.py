"""Random worlds of tenants and rights, and a plain model of who may see what in them.

``Facts`` knows nothing of SQL: dictionaries of ids, and the rules as one would say them aloud. ``draw``
writes a random world into both, ``change`` changes both, the rows by the product's own services.
"""

import random
from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cache
from uuid import uuid4

from django.contrib.auth.models import Permission
from django.utils import timezone

from apps.agents.models import Agent, AgentShare
from apps.conversations.models import Conversation
from apps.knowledge.models import (
    Chunk,
    Document,
    DocumentShare,
    Folder,
    FolderShare,
    KnowledgeBase,
    KnowledgeBaseShare,
)
from apps.models.models import ModelConfig, ModelShare
from apps.workspaces import services
from apps.workspaces.models import ApiKey, Department, DepartmentMember, Membership, User, Workspace
from apps.workspaces.principals import NOBODY, SCOPES, Principal

SHARES = {"base": KnowledgeBaseShare, "folder": FolderShare, "document": DocumentShare}
SHARES |= {"agent": AgentShare, "model": ModelShare}
SCOPES_OF_KEYS = (
    list(SCOPES),
    ["knowledge:read"],
    ["conversations:write", "agents:read", "knowledge:read", "models:read"],
    ["agents:write", "models:write", "workspace:read"],
    ["knowledge:write"],
)
ROLES = ("owner", "admin", "member", "viewer")


@dataclass(frozen=True)
class Row:
    kind: str
    workspace: object
    restricted: bool
    base: object = None  # of folders and documents
    above: object = None  # the folder that it is in
    deleted: bool = False


@dataclass
class Facts:
    roles: dict = field(default_factory=dict)  # (person, workspace) -> role
    locked: set = field(default_factory=set)  # people who may not sign in
    parents: dict = field(default_factory=dict)  # department -> the one above
    staff: set = field(default_factory=set)  # (department, person)
    rows: dict = field(default_factory=dict)  # id -> Row
    shares: dict = field(default_factory=lambda: defaultdict(dict))  # row -> (kind of subject, subject) -> level
    ended: set = field(default_factory=set)  # keys that are revoked or expired
    talks: dict = field(default_factory=dict)  # conversation -> (owner, workspace)

    def role(self, who, workspace):
        """Whose rights count here, and as what."""
        if who.user_id is None or who.user_id in self.locked or who.key_id in self.ended:
            return None
        if who.workspace_id and who.workspace_id != workspace:
            return None
        return self.roles.get((who.user_id, workspace))

    def in_department(self, person, department):
        for below, someone in self.staff:
            while someone == person and below is not None:
                if below == department:
                    return True
                below = self.parents[below]
        return False

    def reached(self, who, pk, level):
        role = self.role(who, self.rows[pk].workspace)
        for (kind, subject), given in self.shares[pk].items():
            if level == "manage" and given != "manage":
                continue
            if who.kind == "widget":
                if kind == "widget" and subject == who.widget_id:
                    return True
            elif role and (
                (kind == "user" and subject == who.user_id)
                or (kind == "department" and self.in_department(who.user_id, subject))
                or (kind == "role" and ROLES.index(role) <= ROLES.index(subject))
            ):
                return True
        return False

    def manages(self, who, pk):
        """Whether they hold the right to manage, whatever their key's scopes."""
        role = self.role(who, self.rows[pk].workspace)
        return bool(role) and (role in ("owner", "admin") or self.reached(who, pk, "manage"))

    def may(self, who, pk, act):
        """The whole of the rules: may ``who`` read or manage the row?"""
        row = self.rows[pk]
        area = {"agent": "agents", "model": "models"}.get(row.kind, "knowledge")
        if row.deleted or not who.may(f"{area}:{'read' if act == 'read' else 'write'}"):
            return False
        if row.base is not None:
            if not self.may(who, row.base, act):
                return False
            return act == "manage" or self.manages(who, row.base) or self._way_is_open(who, pk)
        if who.kind == "widget":
            return act == "read" and row.workspace == who.workspace_id and self.reached(who, pk, "read")
        if act == "manage":
            return self.manages(who, pk)
        return bool(self.role(who, row.workspace)) and (
            not row.restricted or self.manages(who, pk) or self.reached(who, pk, "read")
        )

    def _way_is_open(self, who, pk):
        while pk is not None:
            if self.rows[pk].restricted and not self.reached(who, pk, "read"):
                return False
            pk = self.rows[pk].above
        return True

    def seen(self, who, kind, act):
        return {pk for pk, row in self.rows.items() if row.kind == kind and self.may(who, pk, act)}

    def own_talks(self, who):
        may = who.may("conversations:read")
        return {
            pk for pk, (owner, place) in self.talks.items() if may and owner == who.user_id and self.role(who, place)
        }


@cache
def permission(kind, level):
    name = SHARES[kind]._meta.get_field("content_object").related_model._meta.model_name
    return Permission.objects.get(codename=f"{level}_{name}").pk


class World:
    """A drawn world: the facts, and who is asked about."""

    def __init__(self, seed):
        self.rng, self.facts, self.objects = random.Random(seed), Facts(), {}
        self.people, self.workspaces, self.departments, self.principals = [], [], [], [NOBODY]
        self._people()
        self._rows()
        self._shares()
        self._principals()

    def some(self, rows, share):
        return [row for row in rows if self.rng.random() < share]

    def _keep(self, rows):
        type(rows[0]).objects.bulk_create(rows) if rows else None
        self.objects.update((row.pk, row) for row in rows)
        return rows

    def _people(self):
        rng, facts = self.rng, self.facts
        self.people = self._keep(
            [User(email=f"{uuid4().hex}@example.com", is_staff=rng.random() < 0.2) for _ in range(4)]
        )
        self.workspaces = self._keep([Workspace(name="W", slug=uuid4().hex) for _ in range(2)])
        memberships, staff = [], []
        for workspace in self.workspaces:
            tree = []
            for _ in range(3):
                above = rng.choice([None, *tree])
                below = Department(workspace=workspace, name=uuid4().hex, parent=above)
                below.lineage = [below.pk, *(above.lineage if above else [])]
                facts.parents[below.pk] = above.pk if above else None
                tree.append(below)
            self.departments += self._keep(tree)
            for person in self.some(self.people, 0.7):
                role = rng.choice(["admin", "member", "member", "viewer", "viewer"])
                memberships.append(Membership(workspace=workspace, user=person, role=role))
                facts.roles[person.pk, workspace.pk] = role
                for department in self.some(tree, 0.3):
                    staff.append(DepartmentMember(department=department, membership=memberships[-1]))
                    facts.staff.add((department.pk, person.pk))
        self._keep(memberships)
        self._keep(staff)

    def _rows(self):
        rng = self.rng
        bases, folders, documents, chunks, others, talks = [], [], [], [], [], []
        for workspace in self.workspaces:
            for number in range(2):
                base = KnowledgeBase(
                    workspace=workspace,
                    name=str(number),
                    restricted=rng.random() < 0.5,
                    deleted_at=timezone.now() if rng.random() < 0.1 else None,
                )
                bases.append(base)
                inside = [None]
                for _ in range(3):
                    above = rng.choice(inside)
                    folder = Folder(
                        workspace=workspace,
                        knowledge_base=base,
                        parent=above,
                        name=uuid4().hex,
                        restricted=rng.random() < 0.4,
                    )
                    folder.lineage = [*(above.lineage if above else []), folder.pk]
                    inside.append(folder)
                folders += inside[1:]
                for _ in range(4):
                    documents.append(
                        Document(
                            workspace=workspace,
                            knowledge_base=base,
                            folder=rng.choice(inside),
                            name="d",
                            size_bytes=1,
                            sha256=uuid4().hex * 2,
                            restricted=rng.random() < 0.3,
                            deleted_at=timezone.now() if rng.random() < 0.1 else None,
                        )
                    )
                    chunks.append(
                        Chunk(
                            knowledge_base=base,
                            document=documents[-1],
                            generation=1,
                            level=0,
                            ordinal=0,
                            text="x",
                            start=0,
                            end=1,
                        )
                    )
            for number in range(2):
                restricted = rng.random() < 0.6
                others.append(Agent(workspace=workspace, name=str(number), restricted=restricted))
                others.append(ModelConfig(workspace=workspace, kind="chat", name="m", restricted=restricted))
            talks += [Conversation(workspace=workspace, owner=person) for person in self.some(self.people, 0.5)]
        for rows in (bases, folders, documents, chunks, others[::2], others[1::2], talks):
            self._keep(rows)
        self.facts.talks = {talk.pk: (talk.owner_id, talk.workspace_id) for talk in talks}
        for kind, rows in (
            ("base", bases),
            ("folder", folders),
            ("document", documents),
            ("agent", others[::2]),
            ("model", others[1::2]),
        ):
            for row in rows:
                within = getattr(row, "knowledge_base_id", None)
                above = {"folder": "parent_id", "document": "folder_id"}.get(kind)
                self.facts.rows[row.pk] = Row(
                    kind,
                    row.workspace_id,
                    row.restricted,
                    base=within,
                    above=getattr(row, above) if above else None,
                    deleted=getattr(row, "deleted_at", None) is not None,
                )

    def subjects(self, workspace):
        """All that something of a workspace can be shared with, as (kind, id)."""
        yield from (("user", person) for person, place in self.facts.roles if place == workspace)
        yield from (("department", row.pk) for row in self.departments if row.workspace_id == workspace)
        yield from (("role", "viewer"), ("role", "member"), ("widget", self.widgets[workspace]))

    def _shares(self):
        self.widgets = {workspace.pk: uuid4() for workspace in self.workspaces}
        made = {}
        for pk, row in self.facts.rows.items():
            for kind, subject in self.some(list(self.subjects(row.workspace)), 0.15):
                level = "read" if row.base else self.rng.choice(["read", "manage"])
                self.facts.shares[pk][kind, subject] = level
                given = {
                    {"user": "user_id", "department": "department_id", "widget": "widget_id"}.get(kind, kind): subject
                }
                share = SHARES[row.kind](content_object_id=pk, permission_id=permission(row.kind, level), **given)
                made.setdefault(row.kind, []).append(share)
        for shares in made.values():
            type(shares[0]).objects.bulk_create(shares)

    def _principals(self):
        self.principals += [person.principal for person in self.people]
        keys = []
        for person in self.people[:3]:
            scopes = self.rng.choice(SCOPES_OF_KEYS)
            place = self.rng.choice(self.workspaces)
            keys.append(ApiKey(workspace=place, user=person, name="k", start="ks_", digest=uuid4().hex, scopes=scopes))
        self._keep(keys)
        self.principals += [key.principal for key in keys]
        for workspace, widget in self.widgets.items():
            self.principals.append(Principal.widget(widget_id=widget, workspace_id=workspace, visitor_id=uuid4()))

    def change(self):
        """Change one thing, in the rows and in the facts."""
        rng, facts = self.rng, self.facts
        what = rng.choice(
            ["unshare", "unshare", "share", "leave", "lock", "end", "restrict", "restrict", "role", "move"]
        )
        held_now = [(pk, *subject) for pk, shares in facts.shares.items() for subject in shares]
        if what == "unshare" and held_now:
            (pk, kind, subject) = rng.choice(held_now)
            column = {"role": "role", "widget": "widget_id"}.get(kind, f"{kind}_id")
            held = SHARES[facts.rows[pk].kind].objects.get(content_object=pk, **{column: subject})
            services.unshare(share=held, actor=self.people[0])
            del facts.shares[pk][kind, subject]
        elif what == "share":
            pk = rng.choice(list(facts.rows))
            row = facts.rows[pk]
            kind, subject = rng.choice(list(self.subjects(row.workspace)))
            level = "read" if row.base else rng.choice(["read", "manage"])
            given = {"widget": "widget_id"}.get(kind, kind)
            value = self.objects[subject] if kind in ("user", "department") else subject
            services.share(
                row=self.objects[pk], subject=services.Subject(**{given: value}), level=level, actor=self.people[0]
            )
            facts.shares[pk][kind, subject] = level
        elif what == "leave" and facts.roles:
            person, workspace = rng.choice(list(facts.roles))
            Membership.objects.get(user=person, workspace=workspace).delete()
            del facts.roles[person, workspace]
            here = {row.pk for row in self.departments if row.workspace_id == workspace}
            facts.staff = {(group, one) for group, one in facts.staff if one != person or group not in here}
        elif what == "lock":
            person = rng.choice(self.people)
            User.objects.filter(pk=person.pk).update(is_active=False)
            facts.locked.add(person.pk)
        elif what == "end":
            key = rng.choice([one for one in self.principals if one.kind == "key"])
            past = timezone.now() - timedelta(seconds=1)
            ApiKey.objects.filter(pk=key.key_id).update(**{rng.choice(["revoked_at", "expires_at"]): past})
            facts.ended.add(key.key_id)
        elif what == "restrict":
            pk = rng.choice(list(facts.rows))
            shut = not facts.rows[pk].restricted
            services.set_restricted(row=self.objects[pk], restricted=shut, actor=self.people[0])
            facts.rows[pk] = replace(facts.rows[pk], restricted=shut)
        elif what == "role" and facts.roles:
            person, workspace = rng.choice(list(facts.roles))
            role = rng.choice(["admin", "member", "viewer"])
            services.set_membership(workspace=self.objects[workspace], user=self.objects[person], role=role)
            facts.roles[person, workspace] = role
        elif what == "move":
            below = rng.choice(self.departments)
            above = rng.choice([None, *(row for row in self.departments if row.workspace_id == below.workspace_id)])
            way = above.pk if above else None
            while way is not None and way != below.pk:
                way = facts.parents[way]
            if way is None:
                services.move_department(department=below, parent=above, actor=self.people[0])
                facts.parents[below.pk] = above.pk if above else None
        return what
