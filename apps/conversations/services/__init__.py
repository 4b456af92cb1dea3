"""Writes to conversations, one file an aim: ask and stop, keep in order, attach, share, rate."""

from apps.conversations.services.asking import find_turn, start_turn, stop_turn
from apps.conversations.services.attaching import add_attachment, remove_attachment
from apps.conversations.services.keeping import (
    archive_conversation,
    delete_conversation,
    pin_conversation,
    rename_conversation,
    restore_conversation,
    start_conversation,
    title_of,
)

__all__ = [
    "add_attachment",
    "archive_conversation",
    "delete_conversation",
    "find_turn",
    "pin_conversation",
    "remove_attachment",
    "rename_conversation",
    "restore_conversation",
    "start_conversation",
    "start_turn",
    "stop_turn",
    "title_of",
]
