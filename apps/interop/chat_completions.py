"""The OpenAI-compatible endpoint: each agent is a model, each request a turn of our own engine."""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any
from uuid import UUID, uuid4

import orjson
from django.db import close_old_connections
from django.http import HttpResponseBase, StreamingHttpResponse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.agents.models import Agent
from apps.agents.services import default_agent
from apps.common.database import wait_for
from apps.common.errors import KnowSphereError
from apps.common.text import storable
from apps.conversations import frames, services, watching
from apps.conversations.models import Conversation, Turn
from apps.conversations.services.continuing import Exchange, continue_conversation
from apps.interop import completions
from apps.interop.errors import MessagesRefused, ModelNotFound
from apps.rest.handler import translate
from apps.rest.operations import Operation
from apps.rest.views import ApiView
from apps.workspaces.api.shapes import entered
from apps.workspaces.models import User, Workspace


class CompletionIn(serializers.Serializer[Any]):
    """A request of the chat completions API; what an agent decides itself, such as temperature, is passed over."""

    model = serializers.CharField(max_length=200)
    messages = serializers.ListField(child=serializers.DictField(), min_length=1, max_length=1000)
    stream = serializers.BooleanField(required=False, allow_null=True, default=False)
    stream_options = serializers.DictField(required=False, allow_null=True)


class OpenAiView(ApiView):
    """An address of the OpenAI-compatible endpoint; errors have its shape, and ours beside it."""

    schema = None

    def get_exception_handler(self) -> Any:
        """Put our error into the member that its clients read."""

        def handle(exception: Exception, context: dict[str, Any]) -> Response:
            response = translate(exception, context)
            response.data = completions.error(response.data, response.status_code)
            return response

        return handle

    def agents(self, workspace: Workspace) -> Any:
        """Return the agents that the caller may ask, at least the default one."""
        mine = Agent.objects.visible_to(self.who).filter(workspace=workspace)
        if not mine.exists():
            default_agent(workspace)
        return mine.order_by("-is_default", "name")


class Models(OpenAiView):
    """The agents, as models."""

    operations = {"GET": Operation(scope="agents:read")}

    def on_get(self, request: Request) -> Response:
        """List the agents of the key's workspace."""
        workspace = entered(self, None)
        return Response({"object": "list", "data": [as_model(agent) for agent in self.agents(workspace)[:200]]})


class OneModel(OpenAiView):
    """An agent, as a model."""

    operations = {"GET": Operation(scope="agents:read")}

    def on_get(self, request: Request, model: str) -> Response:
        """Return an agent by its name or id."""
        return Response(as_model(named(self.agents(entered(self, None)), model)))


class ChatCompletions(OpenAiView):
    """Questions and answers."""

    operations = {"POST": Operation(input=CompletionIn, changes=False, scope="conversations:write")}

    def on_post(self, request: Request) -> HttpResponseBase:
        """Answer the last message; the turn is kept as any other, and so are its sources."""
        given = self.taken()
        workspace = entered(self, None)
        agent = named(self.agents(workspace), given["model"])
        earlier, question = told(given["messages"])
        frames.check_ask(frames.Ask(text=question, client_id=uuid4().hex))  # before anything is made for it
        place = continue_conversation(workspace=workspace, agent=agent, earlier=earlier, actor=self.who)
        parent = place.turn.pk if place.turn else place.conversation.pk
        ask = frames.Ask(text=question, client_id=uuid4().hex, parent=parent)
        turn = self._started(place.conversation, ask, made=place.made)
        answer = completions.Answer(turn.pk, place.conversation.pk, agent.name, workspace.slug)
        if not given["stream"]:
            close_old_connections()  # none is held while the answer is written
            return Response(wait_for(_whole, answer, self.who))
        with_usage = bool((given.get("stream_options") or {}).get("include_usage"))
        pulsing = watching.with_pulse(_stream(answer, self.who, with_usage=with_usage), pulse=b": alive\n\n")
        response = StreamingHttpResponse(pulsing, content_type="text/event-stream")
        response["Cache-Control"] = "no-store"
        response["X-Accel-Buffering"] = "no"
        return response

    def _started(self, conversation: Conversation, ask: frames.Ask, *, made: bool) -> Turn:
        try:
            return wait_for(services.start_turn, conversation, ask, actor=self.who)
        except KnowSphereError:
            if made:
                conversation.delete()  # nothing was asked in it
            raise


def as_model(agent: Agent) -> dict[str, Any]:
    """Return an agent in the shape of a model."""
    created = int(agent.created_at.timestamp())
    return {"id": agent.name, "object": "model", "created": created, "owned_by": "knowsphere", "agent": str(agent.pk)}


def named(agents: Any, model: str) -> Agent:
    """Return the agent of this name or id. Raises ModelNotFound."""
    try:
        by_id = agents.filter(pk=UUID(model)).first()
    except ValueError:
        by_id = None
    found: Agent | None = by_id or agents.filter(name=storable(model)).first()
    if found is None or storable(model) != model:
        raise ModelNotFound(model=model[:100])
    return found


def told(messages: list[dict[str, Any]]) -> tuple[list[Exchange], str]:
    """Return the exchanges before the last question, and the question.

    System messages are passed over: an agent has instructions of its own. Several messages of one side in a row
    are one.

    Raises:
        MessagesRefused: the last message is not a person's, or one of them holds more than text.
    """
    turns: list[list[str]] = []  # role, text
    for message in messages:
        role = message.get("role")
        if role in ("system", "developer"):
            continue
        if role not in ("user", "assistant"):
            raise MessagesRefused(reason=f"a message of the role {str(role)[:20]!r} cannot be taken over")
        text = _text(message.get("content"))
        if turns and turns[-1][0] == role:
            turns[-1][1] += "\n\n" + text
        else:
            turns.append([role, text])
    if not turns or turns[-1][0] != "user":
        raise MessagesRefused(reason="the last one must be the question of a user")
    if turns[0][0] == "assistant":  # a greeting
        turns = turns[1:]
    pairs = zip(turns[:-1:2], turns[1:-1:2], strict=True)
    return [Exchange(question[1], answer[1]) for question, answer in pairs], turns[-1][1]


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise MessagesRefused(reason="the content of a message must be text")
    parts = []
    for part in content:
        if not isinstance(part, dict) or part.get("type") != "text" or not isinstance(part.get("text"), str):
            raise MessagesRefused(reason="only text can be sent here; attach files through /api/v1/attachments")
        parts.append(part["text"])
    return "\n".join(parts)


async def _whole(answer: completions.Answer, who: User) -> dict[str, Any]:
    async with aclosing(watching.watch(answer.turn_id, who=who)) as events:
        async for event in events:
            answer.take(event)
    answer.require_success()
    return answer.completion(int(time.time()))


async def _stream(answer: completions.Answer, who: User, *, with_usage: bool) -> AsyncGenerator[bytes, None]:
    """Yield the answer as chunks; a caller who goes away stops it, for nobody else is reading."""
    created, over = int(time.time()), False
    try:
        yield _data(answer.chunk(created, {"role": "assistant", "content": ""}))
        async with aclosing(watching.watch(answer.turn_id, who=who)) as events:
            async for event in events:
                answer.take(event)
                if event["type"] == "token":
                    yield _data(answer.chunk(created, {"content": event["text"]}))
        over = True
        answer.require_success()
        if annotations := answer.annotations():
            yield _data(answer.chunk(created, {"annotations": annotations}))
        yield _data(answer.chunk(created, {}, finish="stop"))
        if with_usage:
            yield _data({**answer.chunk(created, {}), "choices": [], "usage": answer.usage})
        yield b"data: [DONE]\n\n"
    except KnowSphereError as error:
        over = True
        yield _data(completions.error(error.as_dict(), error.status))
    finally:
        if not over:
            await services.stop_turn(Conversation(pk=answer.conversation_id), answer.turn_id)


def _data(value: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(value, default=str) + b"\n\n"
