"""Addresses of memory in the API."""

from django.urls import path

from apps.memory.api import views

urlpatterns = [
    path("memory-items/", views.MemoryItems.as_view(), name="memory-items"),
    path("memory-items/<uuid:item_id>/", views.OneMemoryItem.as_view(), name="memory-item"),
]
