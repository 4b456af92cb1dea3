"""The web, for the tools ``web_search`` and ``web_fetch``: providers in a table, pages read in a process apart."""
