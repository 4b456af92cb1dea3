"""The REST API of what is remembered."""
