"""What goes to a model and what comes back: plain values, the same for every vendor."""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from uuid import UUID

from apps.common.fields import Secret

Wire = dict[str, Any]  # one message, tool or tool call as the OpenAI chat interface writes it


@dataclass(frozen=True, slots=True)
class Price:
    """What a million tokens cost; ``cached`` None: as much as other input."""

    input: Decimal
    output: Decimal = Decimal(0)
    cached: Decimal | None = None
    currency: str = "USD"


FREE = Price(Decimal(0), currency="")


@dataclass(frozen=True, slots=True)
class ResolvedModel:
    """A model that has been chosen for a call. ``provider`` is "builtin" or "openai_compatible".

    ``guarded``: a workspace gave the address, so it must be public or opened by the operator.
    ``dimensions`` is 0 where it is not known before the first call. Limits are in tokens.
    """

    kind: str
    provider: str
    name: str
    base_url: str = ""
    key: Secret | None = None
    id: UUID | None = None
    guarded: bool = False
    context_window: int = 32_768
    max_output: int = 4_096
    dimensions: int = 0
    max_input: int = 512
    max_batch: int = 64
    max_concurrent: int = 0  # calls at once of one process; 0: as many as come
    logits: bool = False  # of a rerank model: its scores are raw
    capabilities: frozenset[str] = frozenset()  # see configuration.Capability
    thinking_switch: str = ""  # how its vendor switches thinking, see requests.THINKING
    thinks: bool | None = None  # what was chosen for it; None: as the vendor does by itself
    reasoning_replay: str = "never"  # which earlier reasoning it gets back: "never", "tool_turns", "always"
    reasoning_field: str = "reasoning_content"  # the name under which it gets it back
    price: Price | None = None  # None: not known
    fallback: "ResolvedModel | None" = None  # asked instead while this one is down

    @property
    def reference(self) -> str:
        """A stable name to store beside vectors and turns, without secrets."""
        return f"{self.provider}:{self.name}"


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One call of a chat model. ``messages`` and ``tools`` are sent byte for byte as given.

    A message of the assistant may carry what it thought as ``reasoning_content``; the gateway sends it
    where the vendor wants it back, under the vendor's name, and takes it out elsewhere.
    """

    messages: list[Wire]
    tools: list[Wire] = field(default_factory=list)
    tool_choice: str | Wire | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    response_format: Wire | None = None
    parallel_tool_calls: bool | None = None
    thinking: bool | None = None  # None: what was chosen for the model
    logprobs: int = 0  # how many alternatives of the first token are wanted
    stable: int = 0  # characters of the first message that no later request changes; 0: all of it
    cache_key: str = ""  # the same for requests that begin alike, for vendors that route by it
    purpose: str = "answer"  # who asks: "answer", "understand", "title", …; for the ledger and logs


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call. ``estimated`` where the vendor said nothing."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    estimated: bool = False

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.prompt + other.prompt,
            self.completion + other.completion,
            self.cached + other.cached,
            self.estimated or other.estimated,
        )


@dataclass(frozen=True, slots=True)
class ChatDelta:
    """One step of a streamed answer; most carry only ``text``.

    The last one has ``finish_reason`` ("stop", "tool_calls", "length") and ``usage``; ``tool_calls``
    holds complete calls and comes only then: half a call never leaves the gateway.
    """

    text: str = ""
    reasoning: str = ""
    tool_calls: list[Wire] | None = None
    finish_reason: str = ""
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A whole answer. ``top_logprobs`` maps the first token's alternatives to natural logarithms."""

    text: str
    tool_calls: list[Wire] = field(default_factory=list)
    finish_reason: str = "stop"
    usage: Usage = field(default_factory=Usage)
    top_logprobs: dict[str, float] = field(default_factory=dict)
