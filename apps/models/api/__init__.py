"""The REST API of models and their use."""
