"""Reading files that nobody has checked, where they can do no harm: see ``reader.read``."""
