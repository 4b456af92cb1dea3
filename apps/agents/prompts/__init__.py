"""Prompts are Markdown files, reviewed as text; this reads them."""

from functools import cache
from pathlib import Path

from apps.agents.context import AgentProfile

FOLDER = Path(__file__).parent


@cache
def prompt(name: str) -> str:
    """Return the text of ``<name>.md``."""
    return (FOLDER / f"{name}.md").read_text(encoding="utf-8").strip()


def identity(agent: AgentProfile) -> str:
    """Return segment 1 of the prompt: the rules, then the team's own instructions."""
    parts = [prompt("agent_system")]
    if agent.instructions.strip():
        parts.append(f"# Instructions of the team that owns this agent ({agent.name})\n{agent.instructions.strip()}")
    return "\n\n".join(parts)
