"""What is known of a model besides its name and address: limits and capabilities."""

from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Field
from pydantic import ValidationError as SchemaError

from apps.models.chat import Price

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Capability = Literal[
    "tools",
    "forced_tool_choice",
    "parallel_tool_calls",
    "logprobs",
    "json_schema",
    "json_mode",
    "thinking_switch",  # thinking can be switched on and off, as the vendor writes it
    "stream_usage",  # usage at the end of a stream, when asked for with stream_options
    "cache_breakpoints",  # a mark in the prompt says how far it is worth caching
]
ALL: list[Capability] = list(get_args(Capability))

Amount = Annotated[Decimal, Field(ge=0, lt=100_000, max_digits=11, decimal_places=6)]


class Prices(BaseModel):
    """What the vendor takes for a million tokens."""

    model_config = ConfigDict(extra="forbid")

    input: Amount
    output: Amount = Decimal(0)
    cached: Amount | None = None
    currency: str = Field("USD", pattern="^[A-Z]{3}$")

    def as_value(self) -> Price:
        """Return the value that the gateway counts with."""
        return Price(self.input, self.output, self.cached, self.currency)


class Configuration(BaseModel):
    """The JSON of ModelConfig.configuration. Limits are in tokens; 0 dimensions: measured by a call.

    Capabilities are hopes at first: what an endpoint refuses is left out from then on (quirks.py).
    """

    model_config = ConfigDict(extra="forbid")

    context_window: int = Field(32_768, ge=1_024, le=10_000_000)
    max_output: int = Field(4_096, ge=16, le=1_000_000)
    dimensions: int = Field(0, ge=0, le=16_000)
    max_input: int = Field(8_192, ge=64, le=1_000_000)
    max_batch: int = Field(64, ge=1, le=2_048)
    max_concurrent: int = Field(0, ge=0, le=1_000)
    logits: bool = False  # a rerank model's scores are no shares of 1
    capabilities: list[Capability] = ALL
    thinking: Literal["default", "on", "off"] = "default"
    reasoning_replay: Literal["never", "tool_turns", "always"] = "never"
    price: Prices | None = None


def validate_configuration(value: Any) -> None:
    """Refuse a configuration that is not one, naming the field. Raises ValidationError."""
    try:
        Configuration.model_validate(value)
    except SchemaError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"])) or "configuration"
        raise ValidationError(f"{place}: {words_of(problem)}") from None


def words_of(problem: "ErrorDetails") -> str:
    """Say what is wrong with a value, in the reader's language."""
    bounds = problem.get("ctx", {})
    match problem["type"]:
        case "greater_than_equal":
            return _("It is at least %(least)s.") % {"least": bounds["ge"]}
        case "less_than_equal":
            return _("It is at most %(most)s.") % {"most": bounds["le"]}
        case "less_than":
            return _("It is less than %(most)s.") % {"most": bounds["lt"]}
        case "decimal_max_places":
            return _("It has at most %(places)d decimal places.") % {"places": bounds["decimal_places"]}
        case "string_pattern_mismatch":
            return _("It is three capital letters, such as CNY.")
        case "extra_forbidden":
            return _("There is no such setting.")
    return _("This cannot be right.")
