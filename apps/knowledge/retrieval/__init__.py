"""Search: the one path from a question to passages (see ``search.py``)."""
