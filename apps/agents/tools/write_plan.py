"""Tool: write down the steps of a longer task, so that the asker can follow."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from apps.agents.context import TurnContext
from apps.agents.tools.catalog import Tool, ToolResult


class Step(BaseModel):
    """One step of the plan."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    title: str = Field(min_length=1, max_length=200, description="What is done, in the language of the question.")
    state: Literal["pending", "running", "done", "dropped"] = "pending"


class Arguments(BaseModel):
    """The whole plan as it stands now; it replaces the one before."""

    model_config = ConfigDict(extra="forbid")

    steps: list[Step] = Field(min_length=1, max_length=12)


async def write_plan(context: TurnContext, arguments: Arguments) -> ToolResult:
    """Keep the plan and show it; a plan is no evidence and changes nothing."""
    steps = [step.model_dump() for step in arguments.steps]
    context.record.plan = steps
    context.emit("plan", {"steps": steps})
    done = sum(step.state == "done" for step in arguments.steps)
    summary = context.say("plan_written", done=done, steps=len(steps))
    return ToolResult("The plan is noted. Go on with its next step.", summary=summary)


TOOL = Tool(
    name="write_plan",
    description=(
        "Write down the steps of a task that needs several searches, and call it again as steps are done. "
        "Not for simple questions."
    ),
    arguments=Arguments,
    run=write_plan,
)
