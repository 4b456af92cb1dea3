"""Vendors: where they answer, for which kinds, and what their documentation says of models.

Facts here come from the vendor's own pages, which stand beside them; what was not found there is None: it is
measured (dimensions), learned from the vendor's refusals (capabilities), or entered with the model (limits,
prices). All speak the OpenAI interface; Jina, SiliconFlow and TEI also the /rerank one.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from apps.models.chat import Price

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
    """One vendor. ``capabilities`` None: not documented as a whole, so each is tried once."""

    key: str
    label: str
    base_url: str
    kinds: frozenset[str]
    models: tuple[KnownModel, ...] = ()
    capabilities: tuple[str, ...] | None = None
    needs_key: bool = True


def _cny(amount: str) -> Price:
    return Price(Decimal(amount), currency="CNY")


_TABLE = (
    # docs.ollama.com/api/openai-compatibility: tools, JSON mode, logprobs, stream_options; the key is ignored
    Vendor(
        "ollama",
        "Ollama",
        "http://localhost:11434/v1",
        frozenset({CHAT, EMBEDDING, VISION}),
        capabilities=("tools", "logprobs", "stream_usage"),
        needs_key=False,
    ),
    Vendor("openai", "OpenAI", "https://api.openai.com/v1", frozenset({CHAT, EMBEDDING, VISION, SPEECH})),
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
    ),
    # help.aliyun.com/en/model-studio/embedding-interfaces-compatible-with-openai
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
    ),
    # docs.bigmodel.cn/api-reference
    Vendor(
        "zhipu",
        "Zhipu",
        "https://open.bigmodel.cn/api/paas/v4",
        frozenset({CHAT, EMBEDDING, RERANK, VISION}),
        (KnownModel("embedding-3", EMBEDDING),),
    ),
    # api-docs.deepseek.com/zh-cn/quick_start/pricing
    Vendor(
        "deepseek",
        "DeepSeek",
        "https://api.deepseek.com",
        frozenset({CHAT}),
        (KnownModel("deepseek-v4-pro", CHAT),),
    ),
    Vendor("moonshot", "Kimi (Moonshot)", "https://api.moonshot.cn/v1", frozenset({CHAT, VISION})),
    # www.volcengine.com/docs/82379/1355331: version 3 speaks the OpenAI protocol
    Vendor(
        "volcengine",
        "Volcengine Ark",
        "https://ark.cn-beijing.volces.com/api/v3",
        frozenset({CHAT, EMBEDDING, VISION}),
    ),
    Vendor(
        "hunyuan",
        "Tencent Hunyuan",
        "https://api.hunyuan.cloud.tencent.com/v1",
        frozenset({CHAT, EMBEDDING, VISION}),
    ),
    # cloud.baidu.com/doc/WENXINWORKSHOP/s/2m3fihw8s
    Vendor("qianfan", "Baidu Qianfan", "https://qianfan.baidubce.com/v2", frozenset({CHAT, EMBEDDING, VISION})),
    Vendor("openrouter", "OpenRouter", "https://openrouter.ai/api/v1", frozenset({CHAT, VISION})),
    Vendor("jina", "Jina", "https://api.jina.ai/v1", frozenset({EMBEDDING, RERANK})),
    Vendor(CUSTOM, "OpenAI-compatible", "", frozenset({CHAT, EMBEDDING, RERANK, VISION, SPEECH}), needs_key=False),
)
VENDORS = {vendor.key: vendor for vendor in _TABLE}
CHOICES = [(vendor.key, vendor.label) for vendor in _TABLE]


def vendor_at(base_url: str) -> str:
    """Return the key of the vendor that answers at an address, else "custom"."""
    wanted = base_url.rstrip("/")
    return next((vendor.key for vendor in _TABLE if vendor.base_url == wanted), CUSTOM)


def facts(provider: str, kind: str, name: str) -> dict[str, Any]:
    """Return what is documented of a model, as a configuration holds it; what is not known is left out."""
    vendor = VENDORS.get(provider, VENDORS[CUSTOM])
    found = next((known for known in vendor.models if (known.kind, known.name) == (kind, name)), None)
    fields = ("context_window", "max_output", "dimensions", "max_input", "max_batch")
    values: dict[str, Any] = {
        field: value for field in fields if found and (value := getattr(found, field)) is not None
    }
    if vendor.capabilities is not None:
        values["capabilities"] = list(vendor.capabilities)
    if found is not None and found.price is not None:
        price = found.price
        values["price"] = {
            "input": price.input,
            "output": price.output,
            "cached": price.cached,
            "currency": price.currency,
        }
    return values
