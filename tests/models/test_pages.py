"""The pages of models."""

import pytest
from django.urls import reverse

from apps.models import discovery, gateway, services
from apps.models.models import ModelConfig
from apps.workspaces.models import User
from tests.vendor import Reply, call
from tests.vendor.plugin import CANARY


@pytest.fixture
def post(client, acme, ann):
    client.force_login(ann)

    def post(route, *args, headers=None, **data):
        url = reverse(f"models:{route}", args=[acme.slug, *args])
        return client.post(url, data, follow=True, headers=headers)

    return post


@pytest.fixture
def page(client, acme, ann):
    client.force_login(ann)
    return lambda route, *args: client.get(reverse(f"models:{route}", args=[acme.slug, *args])).content.decode()


@pytest.fixture
def reachable(settings, vendor):
    settings.OUTBOUND_ALLOW = [f"127.0.0.1:{vendor.port}"]
    return vendor


@pytest.fixture
def add(acme, ann, vendor):
    def add(name="m-1", kind="chat", **more):
        more = {"base_url": vendor.url, "api_key": CANARY, **more}
        return services.add_model(workspace=acme, kind=kind, name=name, actor=ann, **more)

    return add


def test_a_model_is_added_with_vendor_key_and_name(post, page):
    answer = post("add-model", provider="dashscope", name="text-embedding-v4", api_key=CANARY)
    row = ModelConfig.objects.get()
    assert (row.kind, row.base_url) == ("embedding", "https://dashscope.aliyuncs.com/compatible-mode/v1")
    assert row.api_key.reveal() == CANARY
    assert "text-embedding-v4" in page("list-models")
    assert CANARY not in answer.content.decode() + page("list-models") + page("show-model", row.pk)


@pytest.mark.parametrize(
    "wrong",
    [
        *({"kind": "embedding"}, {"api_key": ""}, {"name": ""}, {"provider": "custom"}, {"base_url": "nowhere"}),
        {"base_url": "https://me:pw@models.example.com/v1"},
    ],
)
def test_what_a_vendor_needs_is_asked_for(post, wrong):
    answer = post("add-model", **{"provider": "deepseek", "name": "m", "api_key": CANARY, "kind": "chat", **wrong})
    assert answer.status_code == 422
    assert CANARY not in answer.content.decode()
    assert not ModelConfig.objects.exists()


@pytest.mark.parametrize(
    ("provider", "name", "kind"),
    [
        ("openai", "gpt-5.4-mini", "chat"),
        ("openai", "text-embedding-3-small", "embedding"),
        ("openai", "whisper-1", "speech"),
        ("siliconflow", "BAAI/bge-reranker-v2-m3", "rerank"),
        ("siliconflow", "Pro/BAAI/bge-m3", "embedding"),
        ("siliconflow", "Qwen/Qwen3-VL-32B-Instruct", "vision"),
        ("siliconflow", "FunAudioLLM/SenseVoiceSmall", "speech"),
        ("zhipu", "glm-4.6v", "vision"),
        ("zhipu", "glm-5", "chat"),
        ("ollama", "nomic-embed-text:latest", "embedding"),
        ("ollama", "qwen2.5vl:7b", "vision"),
        ("dashscope", "qwen-vl-plus", "vision"),
        ("custom", "my-model", "chat"),
        ("deepseek", "some-embedding", "chat"),  # a kind that the vendor does not have
    ],
)
def test_what_a_model_is_for_is_guessed_by_its_name(provider, name, kind):
    assert discovery.guess_kind(provider, name) == kind


def test_the_vendors_models_are_listed_with_the_key_just_entered(post, reachable):
    reachable.models = ["qwen-plus", "qwen-plus", "text-embedding-v4", "<b>odd\n", 7, None]
    asked = post("list-offered", provider="custom", base_url=reachable.url, api_key=CANARY).content.decode()
    assert asked.count("<option") == 3
    assert '<option value="text-embedding-v4">embedding' in asked
    assert "&lt;b&gt;odd" in asked
    assert CANARY not in asked
    assert reachable.requests[0].headers["Authorization"] == f"Bearer {CANARY}"


@pytest.mark.parametrize(
    ("listing", "words"),
    [
        ((401, {"error": {"message": f"Incorrect key {CANARY}"}}), "Incorrect key"),
        ((404, {"error": "no such path"}), "no such path"),
        ((200, {"data": "none"}), "no list of models"),
        ((200, {"data": []}), "lists no models"),
    ],
)
def test_a_vendor_that_lists_nothing_says_why(post, reachable, listing, words):
    reachable.listing = listing
    asked = post("list-offered", provider="custom", base_url=reachable.url, api_key=CANARY).content.decode()
    assert words in asked
    assert CANARY not in asked


def test_a_private_address_is_not_asked_for_its_models(post, vendor):
    asked = post("list-offered", provider="custom", base_url=vendor.url).content.decode()
    assert "does not connect" in asked
    assert not vendor.requests


def test_what_the_documentation_names_is_offered_where_the_vendor_is_silent(post, settings):
    settings.OUTBOUND_ALLOW = []
    asked = post("list-offered", provider="dashscope", base_url="http://127.0.0.1:9/v1").content.decode()
    assert "text-embedding-v4" in asked


@pytest.fixture
def ollama(monkeypatch, vendor):
    monkeypatch.setattr(discovery, "OLLAMA", f"http://127.0.0.1:{vendor.port}")
    vendor.models = ["qwen3:8b", "nomic-embed-text:latest", "llava:7b"]
    return vendor


def test_the_ollama_of_this_machine_is_offered_to_those_who_run_the_server(post, page, ollama, ann, acme):
    assert "qwen3:8b" not in page("find-ollama")  # ann runs a workspace, not the server
    assert post("add-ollama", name="qwen3:8b").status_code == 403
    User.objects.filter(pk=ann.pk).update(is_staff=True)
    offered = page("find-ollama")
    assert "qwen3:8b" in offered
    post("add-ollama", name=["qwen3:8b", "llava:7b"])
    model = gateway.resolve("chat", workspace_id=acme.pk)
    assert (model.name, model.guarded, model.base_url) == ("qwen3:8b", False, f"{discovery.OLLAMA}/v1")
    assert gateway.resolve("vision", workspace_id=acme.pk).name == "llava:7b"
    assert gateway.resolve("embedding", workspace_id=acme.pk).provider == "builtin"
    rest = page("find-ollama")
    assert "qwen3:8b" not in rest
    assert "nomic-embed-text" in rest
    assert post("add-ollama", name="not-there").status_code == 422


def test_without_an_ollama_nothing_is_offered(page, ann, monkeypatch):
    User.objects.filter(pk=ann.pk).update(is_staff=True)
    monkeypatch.setattr(discovery, "OLLAMA", "http://127.0.0.1:9")
    assert not page("find-ollama").strip()
    with pytest.raises(services.InvalidInput):
        services.add_ollama_models(names=["m"], actor=User.objects.get(pk=ann.pk))


def test_jobs_are_given_to_models(post, page, add, acme, mal):
    main, quick, reranker = add("main"), add("quick"), add("scores", "rerank")
    post("choose-model", work="answering", model=main.pk)
    post("choose-model", work="quick", model=quick.pk)
    post("choose-model", work="reranking", model=reranker.pk)
    names = [gateway.resolve(kind, workspace_id=acme.pk, fast=fast).name for kind, fast in JOBS]
    assert names == ["main", "quick", "scores"]
    assert "Not chosen here: main" in page("list-models")  # what would do quick work
    post("choose-model", work="quick", model="")
    assert gateway.resolve("chat", workspace_id=acme.pk, fast=True).name == "main"
    post("choose-model", work="answering", model="")
    assert gateway.resolve("chat", workspace_id=acme.pk).provider == "builtin"
    theirs = services.add_model(
        workspace=mal.memberships.get().workspace, kind="chat", name="t", base_url="http://m.test/v1", actor=mal
    )
    for work, model in (("answering", theirs.pk), ("answering", reranker.pk), ("answering", "x"), ("nothing", "")):
        assert post("choose-model", work=work, model=model).status_code == 404
    services.change_model(model=quick, actor=acme.memberships.get(role="owner").user, enabled=False)
    assert post("choose-model", work="answering", model=quick.pk).status_code == 422


JOBS = [("chat", False), ("chat", True), ("rerank", False)]


def settings_of(row, **changes):
    from apps.models.forms import ModelSettingsForm

    form = ModelSettingsForm(model=row, others=ModelConfig.objects.none())
    values = {name: form.initial.get(name) for name in form.fields}
    return {name: value for name, value in {**values, **changes}.items() if value is not None}


def test_everything_of_a_model_can_be_changed(post, page, add):
    row, standby = add(), add("standby")
    post(
        "change-model",
        row.pk,
        **settings_of(
            row,
            name="m-2",
            fallback=standby.pk,
            context_window=64_000,
            max_concurrent=4,
            price_input="0.8",
            price_output="2",
            price_cached="0.16",
            currency="cny",
            thinking="off",
            reasoning_replay="tool_turns",
            capabilities=["tools", "stream_usage"],
        ),
    )
    row.refresh_from_db()
    assert (row.name, row.fallback_id, row.api_key.reveal()) == ("m-2", standby.pk, CANARY)
    assert row.configuration == {
        "context_window": 64_000,
        "max_concurrent": 4,
        "thinking": "off",
        "reasoning_replay": "tool_turns",
        "capabilities": ["tools", "stream_usage"],
        "price": {"input": "0.8", "output": "2", "cached": "0.16", "currency": "CNY"},
    }
    shown = page("show-model", row.pk)
    assert 'value="64000"' in shown
    assert CANARY not in shown
    post("change-model", row.pk, **settings_of(row))
    before = row.configuration
    row.refresh_from_db()
    assert row.configuration == before  # saved without a change, nothing changes
    assert "standby of m-2" in page("show-model", standby.pk)


def test_what_is_as_documented_is_not_stored(post, page, add):
    row = add("text-embedding-v4", "embedding", provider="dashscope", base_url="")
    assert 'placeholder="8192"' in page("show-model", row.pk)
    post("change-model", row.pk, **settings_of(row, max_batch=5))
    row.refresh_from_db()
    assert row.configuration == {"max_batch": 5}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"context_window": 5}, "at least 1024"),
        ({"price_input": "-1"}, "at least 0"),
        ({"currency": "Y1", "price_input": "1"}, "three capital letters"),
        ({"base_url": "https://elsewhere.example/v1"}, "needs the key entered again"),
        ({"name": " "}, "required"),
        ({"capabilities": ["telepathy"]}, "telepathy"),
    ],
)
def test_values_that_cannot_be_come_back_with_the_form(post, add, wrong, words):
    row = add()
    answer = post("change-model", row.pk, **settings_of(row, **wrong))
    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert CANARY not in answer.content.decode()
    stored = ModelConfig.objects.get(pk=row.pk)
    assert (stored.name, stored.base_url, stored.configuration) == (row.name, row.base_url, {})


def test_a_test_shows_how_fast_what_it_can_or_the_vendors_words(post, page, add, reachable):
    row = add()
    reachable.otherwise = lambda request: (
        Reply(tool_calls=[call("report", {"n": 7})]) if "tools" in request.body else Reply("OK")
    )
    part = post("test-model", row.pk, headers={"HX-Request": "true"}).content.decode()
    assert "First word after" in part
    assert "Calls tools" in part
    assert "<html" not in part
    assert "Connected" in page("list-models")
    reachable.otherwise = lambda request: Reply(status=401, error=f"no such key {CANARY}\nsecond line")
    shown = post("test-model", row.pk).content.decode()
    assert "no such key" in shown
    assert "second line" not in shown
    assert CANARY not in shown + page("list-models")
    row.refresh_from_db()
    assert row.tested["code"] == "model_refused"
    services.change_model(model=row, actor=row.workspace.memberships.get(role="owner").user, api_key="sk-another-key")
    row.refresh_from_db()
    assert row.tested == {}


def test_the_length_of_vectors_is_measured(post, add, reachable):
    row = add("e", "embedding")
    assert "16 numbers" in post("test-model", row.pk).content.decode()
    row.refresh_from_db()
    assert row.configuration == {"dimensions": 16}


def test_a_model_is_switched_off_and_deleted_when_nothing_uses_it(post, page, add, acme):
    row = add()
    post("choose-model", work="answering", model=row.pk)
    assert "is in use" in post("delete-model", row.pk).content.decode()
    assert "job “Answering questions”" in page("show-model", row.pk)
    post("switch-model", row.pk)
    assert gateway.resolve("chat", workspace_id=acme.pk).provider == "builtin"
    post("choose-model", work="answering", model="")
    post("delete-model", row.pk)
    assert not ModelConfig.objects.exists()


def test_a_key_that_cannot_be_read_any_more_asks_for_it_again_and_crashes_nothing(post, page, add, settings):
    import base64
    import os

    row = add()
    settings.MASTER_KEYS = [base64.b64encode(os.urandom(32)).decode()]
    assert "enter it again" in page("show-model", row.pk)
    assert row.name in page("list-models")
    post("change-model", row.pk, **settings_of(row, api_key="sk-a-new-key-now"))
    assert ModelConfig.objects.get(pk=row.pk).api_key.reveal() == "sk-a-new-key-now"
    post("delete-model", row.pk)
    assert not ModelConfig.objects.exists()
