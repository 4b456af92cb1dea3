"""Requests whose address comes from a tenant: model endpoints, web pages (docs/decisions/outbound.md).

``guard`` decides which addresses may be connected to. Three clients ask it, at every connection:
``connector`` (aiohttp), ``transport`` (httpx2, for the openai package) and ``fetching.fetch``.
"""
