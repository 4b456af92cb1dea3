"""Writes to agents that people make: create, save, restore, duplicate, delete. Every save is a version."""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

import orjson
from django.db import transaction
from django.db.models import Max
from django.utils.translation import gettext as _

from apps.agents.errors import AgentInUse, AgentNameTaken
from apps.agents.models import Agent, AgentVersion
from apps.knowledge.models import Folder, KnowledgeBase
from apps.models.models import ModelConfig
from apps.workspaces import audit
from apps.workspaces.models import User, Workspace
from apps.workspaces.permissions import require

VERSIONS_KEPT = 100
ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
FIELDS = (
    "name",
    "instructions",
    "tools",
    "all_knowledge_bases",
    "knowledge_bases",
    "model",
    "configuration",
    "memory",
    "language",
    "opening_questions",
    "restricted",
)


@transaction.atomic
def create_agent(*, workspace: Workspace, values: Mapping[str, Any], actor: User) -> Agent:
    """Make an agent. ``values`` as ``save_agent`` takes them.

    Raises:
        NotFound, NotAllowed: the actor may not make agents here.
        AgentNameTaken.
    """
    require("create_agent", actor=actor, workspace=workspace)
    _check_name(workspace, str(values["name"]), None)
    agent = Agent.objects.create(workspace=workspace, name=values["name"], created_by=actor)
    return save_agent(agent=agent, values=values, actor=actor)


@transaction.atomic
def save_agent(*, agent: Agent, values: Mapping[str, Any], actor: User) -> Agent:
    """Save an agent that came through ``editable_by``, and its version; nothing changed makes none.

    Args:
        agent: the agent.
        values: fields by name (FIELDS); ``knowledge_bases`` and ``model`` as ids of the same workspace.
            Ids that the actor may not use are left out: configuration narrows, it never widens. Bases
            that the actor cannot see stay as others chose them.
        actor: who saves.

    Raises:
        AgentNameTaken.
    """
    _check_name(agent.workspace, str(values.get("name", agent.name)), agent.pk)
    for field in FIELDS:
        if field in values and field not in ("knowledge_bases", "model"):
            setattr(agent, field, values[field])
    if "model" in values:
        agent.model = _model(agent, values["model"], actor)
    agent.save()
    if "knowledge_bases" in values:
        readable = KnowledgeBase.objects.visible_to(actor).filter(workspace=agent.workspace)
        unseen = agent.knowledge_bases.exclude(pk__in=readable)
        agent.knowledge_bases.set([*readable.filter(pk__in=values["knowledge_bases"]), *unseen])
    _keep_version(agent, actor)
    return agent


def _model(agent: Agent, wanted: UUID | None, actor: User) -> ModelConfig | None:
    """Return the model that is wanted where the actor may choose it; the one that others chose may stay."""
    if wanted is None:
        return None
    if wanted == agent.model_id:
        return agent.model
    usable = ModelConfig.objects.visible_to(actor).usable_in(agent.workspace_id)
    return usable.filter(kind="chat", pk=wanted).first()


def _keep_version(agent: Agent, actor: User) -> None:
    snapshot = snapshot_of(agent)
    last = agent.versions.order_by("-number").first()
    if last is not None and last.snapshot == snapshot:
        return
    number = (agent.versions.aggregate(most=Max("number"))["most"] or 0) + 1
    AgentVersion.objects.create(agent=agent, number=number, snapshot=snapshot, saved_by=actor)
    audit.did("agent.made" if number == 1 else "agent.changed", agent, who=actor, version=number)
    agent.versions.filter(number__lte=number - VERSIONS_KEPT).delete()


def snapshot_of(agent: Agent) -> dict[str, Any]:
    """Return all that a version keeps, as JSON."""
    kept = {name: getattr(agent, name) for name in FIELDS if name not in ("knowledge_bases", "model")}
    bases = sorted(str(pk) for pk in agent.knowledge_bases.values_list("pk", flat=True))
    model = str(agent.model_id) if agent.model_id else None
    plain: dict[str, Any] = orjson.loads(orjson.dumps({**kept, "knowledge_bases": bases, "model": model}))
    return plain


def restore_version(*, version: AgentVersion, actor: User) -> Agent:
    """Save an agent again as it was; the version came through ``editable_by``. That is a new version."""
    values = {name: value for name, value in version.snapshot.items() if name in FIELDS}
    values["model"] = UUID(values["model"]) if values.get("model") else None
    return save_agent(agent=version.agent, values=values, actor=actor)


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return what differs between two snapshots: field, and lines with "+", "-" or " "."""
    found = []
    for field in FIELDS:
        old, new = (_lines(snapshot.get(field)) for snapshot in (before, after))
        if old != new:
            lines = [(line[0], line[2:]) for line in difflib.ndiff(old, new) if line[0] in "+- "]
            found.append((field, lines))
    return found


def in_words(snapshots: Sequence[Mapping[str, Any]], *, reader: User) -> list[dict[str, Any]]:
    """Return snapshots with names in place of ids, of what ``reader`` may see."""
    ids = {pk for snapshot in snapshots for pk in _ids(snapshot)}
    names: dict[str, str] = {}
    for rows in (
        KnowledgeBase.objects.visible_to(reader),
        Folder.objects.visible_to(reader),
        ModelConfig.objects.visible_to(reader),
    ):
        names |= {str(pk): str(name) for pk, name in rows.filter(pk__in=ids).values_list("pk", "name")}
    return [_named(snapshot, names) for snapshot in snapshots]


def _ids(value: Any) -> Iterator[UUID]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _ids(one)
    elif isinstance(value, str) and ID.fullmatch(value):
        yield UUID(value)


def _named(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {key: _named(one, names) for key, one in value.items()}
    if isinstance(value, list):
        return [_named(one, names) for one in value]
    if isinstance(value, str) and ID.fullmatch(value):
        return names.get(value, _("something that you may not see"))
    return value


def _lines(value: Any) -> list[str]:
    if isinstance(value, str):
        return value.splitlines()
    if isinstance(value, list):
        return [str(one) for one in value]
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS).decode().splitlines()


@transaction.atomic
def duplicate_agent(*, agent: Agent, actor: User) -> Agent:
    """Make another agent like one that the actor may change, under a name of its own."""
    values: dict[str, Any] = {name: value for name, value in snapshot_of(agent).items() if name != "name"}
    values["model"] = agent.model_id
    taken = set(Agent.objects.filter(workspace=agent.workspace).values_list("name", flat=True))
    for number in range(2, len(taken) + 3):
        name = f"{agent.name[:90]} {number}"
        if name not in taken:
            break
    return create_agent(workspace=agent.workspace, values={**values, "name": name}, actor=actor)


@transaction.atomic
def make_default(*, agent: Agent, actor: User) -> None:
    """Let new questions of the workspace go to this agent.

    Raises:
        NotAllowed: the actor does not run the workspace.
        AgentInUse: the agent is only for some people.
    """
    require("add_model", actor=actor, workspace=agent.workspace)
    if agent.restricted:
        raise AgentInUse(reason=_("it is only for people it is shared with"))
    Agent.objects.filter(workspace=agent.workspace, is_default=True).update(is_default=False)
    Agent.objects.filter(pk=agent.pk).update(is_default=True)
    audit.did("agent.made_default", agent, who=actor)


@transaction.atomic
def delete_agent(*, agent: Agent, actor: User) -> None:
    """Delete an agent that came through ``editable_by``; its conversations stay and go on with the default one.

    Raises:
        AgentInUse: it is the workspace's default.
    """
    if agent.is_default:
        raise AgentInUse(reason=_("new questions go to it; make another one the default first"))
    audit.did("agent.deleted", agent, who=actor)
    agent.delete()


def _check_name(workspace: Workspace, name: str, own: UUID | None) -> None:
    others = Agent.objects.filter(workspace=workspace, name=name)
    if (others.exclude(pk=own) if own else others).exists():
        raise AgentNameTaken(name=name)
