"""Routes of models and their use, inside a workspace."""

from django.urls import path

from apps.models import views

app_name = "models"
MODEL = "models/<uuid:model_id>/"
urlpatterns = [
    path("models/", views.list_models, name="list-models"),
    path("models/add/", views.add_model, name="add-model"),
    path(f"{MODEL}test/", views.test_model, name="test-model"),
    path(f"{MODEL}default/", views.choose_model, name="choose-model"),
    path(f"{MODEL}switch/", views.switch_model, name="switch-model"),
    path(f"{MODEL}delete/", views.delete_model, name="delete-model"),
    path("usage/", views.show_usage, name="show-usage"),
    path("usage/export/", views.export_usage, name="export-usage"),
]
