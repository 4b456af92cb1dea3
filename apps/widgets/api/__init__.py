"""The REST API of widgets."""
