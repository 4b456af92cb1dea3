"""Models that answer without a key and without a network."""
