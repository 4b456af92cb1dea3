"""Writes to conversations, one file an aim: ask and stop, keep in order, attach, share, rate."""

from apps.conversations.services.asking import Changed, find_turn, start_turn, stop_turn
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
from apps.conversations.services.rating import rate_turn, withdraw_rating
from apps.conversations.services.sharing import share_conversation, unshare_conversation

__all__ = [
    "Changed",
    "add_attachment",
    "archive_conversation",
    "delete_conversation",
    "find_turn",
    "pin_conversation",
    "rate_turn",
    "remove_attachment",
    "rename_conversation",
    "restore_conversation",
    "share_conversation",
    "start_conversation",
    "start_turn",
    "stop_turn",
    "title_of",
    "unshare_conversation",
    "withdraw_rating",
]
