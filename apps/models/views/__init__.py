"""Pages of models and of their use."""
