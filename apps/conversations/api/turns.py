"""/turns/."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from uuid import UUID

import orjson
from django.db.models import QuerySet
from django.http import HttpResponseBase, StreamingHttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from apps.common.database import wait_for
from apps.common.errors import KnowSphereError
from apps.common.text import whole
from apps.conversations import services, watching
from apps.conversations.api.shapes import CitationOut, EventsOut, EventsQuery, FeedbackIn, FeedbackOut, TurnOut
from apps.conversations.models import Citation, Feedback, Turn
from apps.conversations.services.rating import rate_turn, withdraw_rating
from apps.rest.operations import Operation
from apps.rest.views import ApiView
from apps.workspaces import audit
from apps.workspaces.models import User

READ, WRITE = "conversations:read", "conversations:write"


class Turns(ApiView):
    """Questions and answers of all your conversations."""

    operations = {"GET": Operation(output=TurnOut, many=True, order=("-started_at", "-pk"), scope=READ)}

    def on_get(self, request: Request) -> Response:
        """List your turns, the newest first."""
        return self.page(Turn.objects.visible_to(self.who).with_answers())


class OneTurn(ApiView):
    """A question and its answer."""

    operations = {"GET": Operation(output=TurnOut, scope=READ)}

    def on_get(self, request: Request, turn_id: UUID) -> Response:
        """Return a turn with what is stored of its answer."""
        return self.answer(self.row(turn_id, Turn.objects.visible_to(self.who).with_answers()))


class EventsOfTurn(ApiView):
    """What happened in a turn, event by event."""

    operations = {"GET": Operation(query=EventsQuery, output=EventsOut, media_types=("text/event-stream",), scope=READ)}

    def on_get(self, request: Request, turn_id: UUID) -> HttpResponseBase:
        """Return the stored events after `after`; with `Accept: text/event-stream`, follow them to the end.

        A stream that broke off goes on with `Last-Event-ID`, as browsers do by themselves.
        """
        turn = self.row(turn_id, Turn.objects.visible_to(self.who))
        asked = self.asked()
        if "text/event-stream" in request.headers.get("Accept", ""):
            after = whole(request.headers.get("Last-Event-ID", "")) or asked["after"]
            pulsing = watching.with_pulse(_stream(turn.pk, self.who, after), pulse=b": alive\n\n")
            response = StreamingHttpResponse(pulsing, content_type="text/event-stream")
            response["Cache-Control"] = "no-store"
            response["X-Accel-Buffering"] = "no"
            return response
        events = wait_for(watching.past, turn.pk, who=self.who, after=asked["after"], limit=asked["limit"])
        last = events[-1]["seq"] if events else asked["after"]
        return self.answer({"status": turn.status, "last_seq": last, "events": events})


async def _stream(turn_id: UUID, who: User, after: int) -> AsyncGenerator[bytes, None]:
    """Yield a turn's events as server-sent events; what ends it early is said in an ``error`` event."""
    try:
        async with aclosing(watching.watch(turn_id, who=who, after=after)) as events:
            async for event in events:
                yield b"id: %d\nevent: %s\ndata: %s\n\n" % (event["seq"], event["type"].encode(), orjson.dumps(event))
    except KnowSphereError as error:
        yield b"event: error\ndata: %s\n\n" % orjson.dumps({"type": "error", **error.as_dict()}, default=str)


class StopTurn(ApiView):
    """The end of a turn before its own."""

    operations = {"POST": Operation(output=TurnOut, status=202, scope=WRITE)}

    def rows(self) -> QuerySet[Turn]:
        return Turn.objects.visible_to(self.who).with_answers()

    def on_post(self, request: Request, turn_id: UUID) -> Response:
        """Stop an answer; what was written stays. One that is over is left as it is."""
        turn = self.row(turn_id, self.rows().select_related("conversation"))
        if turn.status in Turn.ACTIVE:
            wait_for(services.stop_turn, turn.conversation, turn.pk)
        return self.answer(self.row(turn_id))


class FeedbackOfTurn(ApiView):
    """What you think of an answer."""

    operations = {
        "POST": Operation(input=FeedbackIn, output=FeedbackOut, scope=WRITE),
        "DELETE": Operation(status=204, scope=WRITE),
    }

    def rows(self) -> QuerySet[Feedback]:
        return Feedback.objects.visible_to(self.who)

    def on_post(self, request: Request, turn_id: UUID) -> Response:
        """Say whether an answer was good, and why not; a later word replaces an earlier one."""
        turn = self.row(turn_id, Turn.objects.visible_to(self.who))
        return self.answer(rate_turn(turn=turn, actor=self.who, **self.taken()))

    def on_delete(self, request: Request, turn_id: UUID) -> Response:
        """Take back what you said."""
        withdraw_rating(turn=self.row(turn_id, Turn.objects.visible_to(self.who)), actor=self.who)
        return self.done()


class CitationsOfTurn(ApiView):
    """The sources of an answer."""

    operations = {"GET": Operation(output=CitationOut, many=True, order=("n", "pk"), scope=READ)}

    def on_get(self, request: Request, turn_id: UUID) -> Response:
        """List the numbered sources of an answer; `n` is the N of its markers `[[cN]]`."""
        turn = self.row(turn_id, Turn.objects.visible_to(self.who))
        mine = Citation.objects.visible_to(self.who).with_readable(self.who)
        audit.opened(turn, who=self.who, action="sources.opened")
        return self.page(mine.filter(message__turn=turn))
