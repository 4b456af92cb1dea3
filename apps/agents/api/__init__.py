"""The REST API of agents."""
