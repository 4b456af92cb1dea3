"""The REST API of conversations, turns, messages, attachments."""
