"""The one kind of view of the REST API."""

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from django.db.models import Model, QuerySet
from django.http import HttpResponseBase
from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser, MultiPartParser
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.common.errors import NotFound
from apps.rest import idempotency
from apps.rest.callers import caller_of, require_scope
from apps.rest.operations import Operation
from apps.rest.pagination import Pages

METHODS = ("get", "post", "patch", "put", "delete")
SAFE = ("GET", "HEAD", "OPTIONS")


class _Json(JSONParser):
    """JSON, refused where it is nested deeper than Python reads it."""

    def parse(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the body says. Raises ParseError."""
        try:
            return super().parse(*args, **kwargs)
        except RecursionError as error:
            raise ParseError("it is nested too deeply") from error


class ApiView(APIView):
    """One address. ``operations`` names its methods, ``on_get``, ``on_post`` … carry them out.

    ``rows`` is the door through which the address reads; what was written is read through it again
    when a request is repeated under its Idempotency-Key.
    """

    operations: ClassVar[Mapping[str, Operation]] = {}
    permission_classes = (IsAuthenticated,)
    pagination_class = Pages

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Offer exactly the methods that have an operation."""
        super().__init_subclass__(**kwargs)
        cls.http_method_names = [*(method.lower() for method in cls.operations), "head", "options"]
        for method in METHODS:
            if method in cls.http_method_names:
                setattr(cls, method, ApiView._answer)

    @property
    def operation(self) -> Operation:
        """The operation of this request's method."""
        method = self.request.method or "GET"
        return self.operations["GET" if method == "HEAD" else method]

    @property
    def who(self) -> Any:
        """Whose rights count, for doors and services: the person, acting as the key that they came with."""
        return self.request.user

    def get_parsers(self) -> list[Any]:
        """Take files only where files go."""
        method = getattr(getattr(self, "request", None), "method", None)
        wanted = self.operations.get(method or "")
        return [MultiPartParser()] if wanted is not None and wanted.files else [_Json()]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Admit the caller: signed in, not too often, and with a key that is allowed this."""
        super().initial(request, *args, **kwargs)
        if request.method in self.operations or request.method == "HEAD":
            require_scope(request, self.operation.scope)

    def _answer(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        work = partial(getattr(self, f"on_{(request.method or '').lower()}"), request, **kwargs)
        if request.method in SAFE or not self.operation.changes:
            answer: HttpResponseBase = work()
            return answer
        again = partial(self._again, **kwargs)
        return idempotency.once(request, caller=caller_of(request), work=work, again=again)

    def rows(self) -> QuerySet[Any]:
        """Return the rows that the caller may see here."""
        raise NotImplementedError

    def row(self, pk: Any, rows: QuerySet[Any] | None = None) -> Any:
        """Return one row. Raises NotFound where it is missing or not theirs."""
        found = (self.rows() if rows is None else rows).filter(pk=pk).first()
        if found is None:
            raise NotFound
        return found

    def taken(self) -> dict[str, Any]:
        """Return the body, checked. Raises DRF's ValidationError."""
        return self._checked(self.operation.input, self.request.data)

    def asked(self) -> dict[str, Any]:
        """Return the parameters of the address, checked. Raises DRF's ValidationError."""
        return self._checked(self.operation.query, self.request.query_params)

    def _checked(self, shape: Any, data: Any) -> dict[str, Any]:
        serializer = shape(data=data, context={"request": self.request, "view": self})
        serializer.is_valid(raise_exception=True)
        checked: dict[str, Any] = serializer.validated_data
        return checked

    def page(self, rows: QuerySet[Any]) -> Response:
        """Answer with a page of rows."""
        paginator = self.pagination_class()
        found = paginator.paginate_queryset(rows, self.request, view=self) or []
        return paginator.get_paginated_response(self.shown(found, many=True))

    def shown(self, row: Any, **options: Any) -> Any:
        """Return a row as JSON shows it."""
        assert self.operation.output is not None
        return self.operation.output(row, context={"request": self.request, "view": self}, **options).data

    def answer(self, row: Any) -> Response:
        """Answer with a row; what a write wrote is remembered for its repetition."""
        response = Response(self.shown(row), status=self.operation.status)
        if isinstance(row, Model):
            response.written = str(row.pk)  # type: ignore[attr-defined]  # read by idempotency.once
        return response

    def done(self) -> Response:
        """Answer that there is nothing more to say."""
        return Response(status=204)

    def _again(self, written: str, status: int, **kwargs: Any) -> Response:
        """Answer a repeated write with its row as it is now, through today's door."""
        if self.operation.output is None or not written:
            return Response(status=status)
        return Response(self.shown(self.row(written)), status=status)


class Nowhere(APIView):
    """Any address of the API that there is none at."""

    authentication_classes = ()
    permission_classes = ()
    throttle_classes = ()
    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Say that there is nothing, whatever the method."""
        raise NotFound
