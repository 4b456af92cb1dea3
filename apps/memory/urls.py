"""Routes of what is remembered, inside a workspace."""

from django.urls import path

from apps.memory import views

app_name = "memory"
ITEM = "memory/<uuid:item_id>/"
urlpatterns = [
    path("memory/", views.list_items, name="list-items"),
    path("memory/add/", views.add_item, name="add-item"),
    path("memory/switch/", views.switch, name="switch"),
    path(f"{ITEM}update/", views.update_item, name="update-item"),
    path(f"{ITEM}delete/", views.delete_item, name="delete-item"),
    path("memory/documents/<uuid:affinity_id>/forget/", views.forget_document, name="forget-document"),
]
