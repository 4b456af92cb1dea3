"""The REST API of people and workspaces."""
