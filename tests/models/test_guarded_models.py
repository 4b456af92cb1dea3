"""Addresses that a workspace gave go through the outbound guard; the operator's and the environment's do not."""

import asyncio
from urllib.parse import urlsplit

import pytest

from apps.models import connections, gateway, streaming
from apps.models.chat import ChatRequest
from apps.models.models import Kind, ModelConfig
from tests.vendor import Reply

ASK = ChatRequest([{"role": "user", "content": "hello"}])


@pytest.fixture
async def _closing():
    yield
    await connections.close()


pytestmark = pytest.mark.usefixtures("_closing")


async def stream(model):
    return "".join([delta.text async for delta in gateway.stream_chat(model, ASK)])


async def chat(model):
    return (await gateway.chat(model, ASK)).text


async def embed(model):
    return (await gateway.embed(model, ["hello"], purpose="query")).shape


every_way = pytest.mark.parametrize("way", [stream, chat, embed])


@pytest.fixture
def configured(acme):
    """Configure a model and resolve it as work of acme does."""

    def configured(base_url, way, workspace=acme):
        kind = Kind.EMBEDDING if way is embed else Kind.CHAT
        row = ModelConfig.objects.create(workspace=workspace, kind=kind, name="theirs", base_url=base_url, api_key="k")
        return gateway.resolve(kind, workspace_id=acme.pk, explicit=row.pk)

    return configured


@pytest.fixture
def theirs(configured, vendor, request):
    return configured(vendor.url, request.node.callspec.params["way"])


@every_way
async def test_a_workspace_cannot_reach_this_machine(theirs, way, vendor):
    assert theirs.guarded
    with pytest.raises(gateway.ModelAddressRefused) as caught:
        await way(theirs)
    assert vendor.requests == []
    assert (caught.value.as_dict()["code"], caught.value.retryable) == ("outbound_refused", False)


@every_way
async def test_unless_the_operator_opened_it(theirs, way, vendor, settings):
    settings.OUTBOUND_ALLOW = [urlsplit(vendor.url).netloc]
    assert await way(theirs)
    assert len(vendor.requests) == 1


@every_way
async def test_what_one_endpoint_sets_goes_out_with_no_other_call(theirs, way, vendor, settings):
    settings.OUTBOUND_ALLOW = [urlsplit(vendor.url).netloc]
    cookie = {"Set-Cookie": "session=theirs; Path=/"}
    vendor.otherwise = lambda request: Reply("Yes.", headers=cookie)
    assert await way(theirs)
    assert await way(theirs)
    assert [request.headers.get("Cookie") for request in vendor.requests] == [None, None]


@pytest.fixture
def operators(configured, vendor, request):
    return configured(vendor.url, request.node.callspec.params["way"], workspace=None)


@every_way
async def test_the_operators_models_may_be_private(operators, way, vendor):
    assert not operators.guarded
    assert await way(operators)


@pytest.fixture
def environments(scripted_model, acme):
    return gateway.resolve(Kind.CHAT, workspace_id=acme.pk)


async def test_the_environments_models_may_be_private(environments, vendor):
    assert not environments.guarded
    assert await stream(environments) == await chat(environments) == "A scripted answer."


@every_way
async def test_a_redirect_is_not_followed(theirs, way, vendor, settings):
    settings.OUTBOUND_ALLOW = [urlsplit(vendor.url).netloc]
    to = "stream" if way is stream else "chat" if way is chat else "embeddings"
    vendor.script([Reply(status=307, headers={"Location": f"{vendor.url}/chat/completions"})], to=to)
    with pytest.raises(gateway.ModelRefused):
        await way(theirs)
    assert len(vendor.requests) == 1


@pytest.mark.parametrize("way", [stream])
async def test_a_stream_that_does_not_end_is_cut(theirs, way, vendor, settings, monkeypatch):
    settings.OUTBOUND_ALLOW = [urlsplit(vendor.url).netloc]
    monkeypatch.setattr(streaming, "STREAM_BYTES", 100_000)
    vendor.script([Reply(raw=[b": still here\n\n" * 1000] * 2000)])
    with pytest.raises(gateway.ModelRefused):
        await way(theirs)
    assert await asyncio.to_thread(vendor.wait_closed)
    assert len(vendor.requests) == 1
