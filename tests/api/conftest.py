"""A caller of the REST API, as one of the four people."""

import pytest
from rest_framework.test import APIClient


@pytest.fixture(autouse=True)
def _fresh_counts():
    """Count requests from zero in each test."""
    from django.core.cache import cache

    cache.clear()


@pytest.fixture
def api(request, ann):
    """Call the API as somebody: ``api("ann").get("knowledge-bases")``."""

    def api(name="ann", **headers):
        client = Caller(headers=headers)
        if name != "nobody":
            client.force_login(request.getfixturevalue(name))
        return client

    return api


class Caller(APIClient):
    """A client that knows where the API is, and speaks JSON."""

    def generic(self, method, path, *args, **kwargs):
        if not path.startswith(("/", "http")):
            path = f"/api/v1/{path}"
        return super().generic(method, path, *args, **kwargs)

    def request(self, **kwargs):
        kwargs["PATH_INFO"] = kwargs["PATH_INFO"].replace("/%2F", "/")
        return super().request(**kwargs)

    default_format = "json"


@pytest.fixture
def plan(handbook, ann):
    """A document of the handbook that could not be read."""
    from django.core.files.base import ContentFile

    from apps.knowledge.models import Document

    document = Document(
        workspace=handbook.workspace, knowledge_base=handbook, name="plan.md", size_bytes=6, sha256="0" * 64,
        status="error_parsing", error_code="empty_file", uploaded_by=ann,
    )  # fmt: skip
    document.file.save("original", ContentFile(b"# Plan"), save=False)
    document.save()
    return document
