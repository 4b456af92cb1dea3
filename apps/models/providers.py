"""Vendors: where they answer, for which kinds, and what their documentation says of models.

Facts here come from the vendor's own pages, which stand beside them; what was not found there is None: it is
measured (dimensions), learned from the vendor's refusals (capabilities), or entered with the model (limits,
prices). All speak the OpenAI interface; Jina, SiliconFlow and TEI also the /rerank one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from apps.models.chat import Price
from apps.models.configuration import ALL

CHAT, EMBEDDING, RERANK, VISION, SPEECH = "chat", "embedding", "rerank", "vision", "speech"
CUSTOM = "custom"


@dataclass(frozen=True, slots=True)
class KnownModel:
    """What a vendor documents of one model. Limits in tokens, prices a million tokens."""

    name: str
    kind: str
    context_window: int | None = None
    max_output: int | None = None
    dimensions: int | None = None
    max_input: int | None = None
    max_batch: int | None = None
    price: Price | None = None


@dataclass(frozen=True, slots=True)
class Vendor:
    """One vendor. ``capabilities`` None: not documented as a whole, so each is tried once.

    ``lacks`` is what it is documented not to have. ``thinking`` is how its models are told to think or
    not (requests.THINKING); ``replay``, which of their earlier reasoning they want to see again.
    """

    key: str
    label: str
    base_url: str
    kinds: frozenset[str]
    models: tuple[KnownModel, ...] = ()
    capabilities: tuple[str, ...] | None = None
    lacks: tuple[str, ...] = ()
    thinking: str = ""
    replay: str = "never"
    reasoning_field: str = "reasoning_content"
    caches: bool = False  # explicit breakpoints
    cache_key: str = ""  # the field by which requests that begin alike find the same cache
    needs_key: bool = True


def _cny(amount: str, output: str = "0", cached: str | None = None) -> Price:
    return Price(Decimal(amount), Decimal(output), None if cached is None else Decimal(cached), "CNY")


_TABLE = (
    # docs.ollama.com/api/openai-compatibility: tools, JSON mode, logprobs, stream_options, reasoning_effort; the key
    # is ignored
    Vendor(
        "ollama",
        "Ollama",
        "http://localhost:11434/v1",
        frozenset({CHAT, EMBEDDING, VISION}),
        capabilities=("tools", "logprobs", "json_mode", "json_schema", "stream_usage", "thinking_switch"),
        thinking="effort",
        reasoning_field="reasoning",
        needs_key=False,
    ),
    # platform.openai.com/docs/guides/prompt-caching: prompt_cache_key; …/docs/api-reference/embeddings/create
    Vendor(
        "openai",
        "OpenAI",
        "https://api.openai.com/v1",
        frozenset({CHAT, EMBEDDING, VISION, SPEECH}),
        (
            KnownModel("text-embedding-3-small", EMBEDDING, max_input=8_192, max_batch=2_048),
            KnownModel("text-embedding-3-large", EMBEDDING, max_input=8_192, max_batch=2_048),
        ),
        cache_key="prompt_cache_key",
    ),
    # docs.siliconflow.cn/en/api-reference/embeddings/create-embeddings
    Vendor(
        "siliconflow",
        "SiliconFlow",
        "https://api.siliconflow.cn/v1",
        frozenset({CHAT, EMBEDDING, RERANK, VISION, SPEECH}),
        (
            KnownModel("BAAI/bge-m3", EMBEDDING, max_input=8_192),
            KnownModel("Pro/BAAI/bge-m3", EMBEDDING, max_input=8_192),
            KnownModel("BAAI/bge-large-zh-v1.5", EMBEDDING, max_input=512),
            KnownModel("BAAI/bge-large-en-v1.5", EMBEDDING, max_input=512),
            KnownModel("netease-youdao/bce-embedding-base_v1", EMBEDDING, max_input=512),
        ),
        thinking="enable",
    ),
    # help.aliyun.com/en/model-studio/embedding-interfaces-compatible-with-openai, …/deep-thinking (enable_thinking),
    # …/context-cache (cache_control in a message's content)
    Vendor(
        "dashscope",
        "Alibaba DashScope",
        "https://dashscope.aliyuncs.com/compatible-mode/v1",
        frozenset({CHAT, EMBEDDING, VISION}),
        (
            KnownModel(
                "text-embedding-v4", EMBEDDING, dimensions=1_024, max_input=8_192, max_batch=10, price=_cny("0.5")
            ),
            KnownModel(
                "text-embedding-v3", EMBEDDING, dimensions=1_024, max_input=8_192, max_batch=10, price=_cny("0.5")
            ),
            KnownModel(
                "text-embedding-v2", EMBEDDING, dimensions=1_536, max_input=2_048, max_batch=25, price=_cny("0.7")
            ),
        ),
        thinking="enable",
        caches=True,
    ),
    # docs.bigmodel.cn/api-reference (tool_choice: auto alone; 文本嵌入: limits), …/guide/capabilities/thinking,
    # …/guide/models/embedding (prices)
    Vendor(
        "zhipu",
        "Zhipu",
        "https://open.bigmodel.cn/api/paas/v4",
        frozenset({CHAT, EMBEDDING, RERANK, VISION}),
        (
            KnownModel("embedding-3", EMBEDDING, dimensions=2_048, max_input=3_072, max_batch=64, price=_cny("0.5")),
            KnownModel("embedding-2", EMBEDDING, dimensions=1_024, max_input=512, price=_cny("0.5")),
        ),
        lacks=("forced_tool_choice",),
        thinking="type",
    ),
    # api-docs.deepseek.com/zh-cn/quick_start/pricing (prices of the busy hours: the highest), …/guides/thinking_mode
    # (reasoning_content of turns with tool calls has to come back)
    Vendor(
        "deepseek",
        "DeepSeek",
        "https://api.deepseek.com",
        frozenset({CHAT, VISION}),
        (
            KnownModel("deepseek-v4-pro", CHAT, 1_000_000, 384_000, price=_cny("9", "27", "0.30")),
            KnownModel("deepseek-flash", CHAT, 1_000_000, 384_000, price=_cny("2", "8", "0.04")),
            KnownModel("deepseek-flash", VISION, 1_000_000, 384_000, price=_cny("2", "8", "0.04")),
        ),
        lacks=("json_schema",),
        thinking="type",
        replay="tool_turns",
    ),
    # platform.moonshot.cn/docs: kimi-k2.5 and later think unless told not to, and want their reasoning back with calls;
    # platform.kimi.com/docs/pricing/chat-k26: window
    Vendor(
        "moonshot",
        "Kimi (Moonshot)",
        "https://api.moonshot.cn/v1",
        frozenset({CHAT, VISION}),
        (KnownModel("kimi-k2.6", CHAT, 256_000), KnownModel("kimi-k2.6", VISION, 256_000)),
        thinking="type",
        replay="tool_turns",
    ),
    # www.volcengine.com/docs/82379/1355331: version 3 speaks the OpenAI protocol; …/1449737: thinking
    Vendor(
        "volcengine",
        "Volcengine Ark",
        "https://ark.cn-beijing.volces.com/api/v3",
        frozenset({CHAT, EMBEDDING, VISION}),
        thinking="type",
    ),
    Vendor(
        "hunyuan",
        "Tencent Hunyuan",
        "https://api.hunyuan.cloud.tencent.com/v1",
        frozenset({CHAT, EMBEDDING, VISION}),
    ),
    # cloud.baidu.com/doc/WENXINWORKSHOP/s/2m3fihw8s
    Vendor("qianfan", "Baidu Qianfan", "https://qianfan.baidubce.com/v2", frozenset({CHAT, EMBEDDING, VISION})),
    # openrouter.ai/docs: reasoning {enabled}, reasoning of earlier messages, cache_control in a message's content
    Vendor(
        "openrouter",
        "OpenRouter",
        "https://openrouter.ai/api/v1",
        frozenset({CHAT, VISION}),
        thinking="reasoning",
        replay="tool_turns",
        reasoning_field="reasoning",
        caches=True,
    ),
    # jina.ai/models: input lengths of 8K and 131K
    Vendor(
        "jina",
        "Jina",
        "https://api.jina.ai/v1",
        frozenset({EMBEDDING, RERANK}),
        (
            KnownModel("jina-embeddings-v3", EMBEDDING, dimensions=1_024, max_input=8_000),
            KnownModel("jina-reranker-v3", RERANK, max_input=131_000),
        ),
    ),
    # docs.vllm.ai and docs.sglang.ai, the servers that most who run their own use: the switch is the template's
    Vendor(
        CUSTOM,
        "OpenAI-compatible",
        "",
        frozenset({CHAT, EMBEDDING, RERANK, VISION, SPEECH}),
        thinking="template",
        needs_key=False,
    ),
)
VENDORS = {vendor.key: vendor for vendor in _TABLE}
CHOICES = [(vendor.key, vendor.label) for vendor in _TABLE]


def vendor_at(base_url: str) -> str:
    """Return the key of the vendor that answers at an address, else "custom"."""
    wanted = base_url.rstrip("/")
    return next((vendor.key for vendor in _TABLE if vendor.base_url == wanted), CUSTOM)


def _capabilities(vendor: Vendor) -> Iterator[str]:
    """What is documented, or else everything but what the vendor would have to name its own way."""
    for name in ALL:
        if name == "cache_breakpoints":
            has = vendor.caches
        elif name == "thinking_switch":
            has = bool(vendor.thinking)
        else:
            has = vendor.capabilities is None or name in vendor.capabilities
        if has and name not in vendor.lacks:
            yield name


def facts(provider: str, kind: str, name: str) -> dict[str, Any]:
    """Return what is documented of a model, as a configuration holds it; what is not known is left out."""
    vendor = VENDORS.get(provider, VENDORS[CUSTOM])
    found = next((known for known in vendor.models if (known.kind, known.name) == (kind, name)), None)
    fields = ("context_window", "max_output", "dimensions", "max_input", "max_batch")
    values: dict[str, Any] = {
        field: value for field in fields if found and (value := getattr(found, field)) is not None
    }
    if kind in (CHAT, VISION):
        values["capabilities"] = list(_capabilities(vendor))
        values["reasoning_replay"] = vendor.replay
    if found is not None and found.price is not None:
        price = found.price
        values["price"] = {
            "input": price.input,
            "output": price.output,
            "cached": price.cached,
            "currency": price.currency,
        }
    return values
