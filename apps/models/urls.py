"""Routes of models and their use, inside a workspace."""

from django.urls import path

from apps.models.views import configured, usage

app_name = "models"
MODEL = "models/<uuid:model_id>/"
urlpatterns = [
    path("models/", configured.list_models, name="list-models"),
    path("models/add/", configured.add_model, name="add-model"),
    path("models/offered/", configured.list_offered, name="list-offered"),
    path("models/ollama/", configured.find_ollama, name="find-ollama"),
    path("models/ollama/add/", configured.add_ollama, name="add-ollama"),
    path("models/jobs/", configured.choose_model, name="choose-model"),
    path(MODEL, configured.show_model, name="show-model"),
    path(f"{MODEL}change/", configured.change_model, name="change-model"),
    path(f"{MODEL}test/", configured.test_model, name="test-model"),
    path(f"{MODEL}switch/", configured.switch_model, name="switch-model"),
    path(f"{MODEL}delete/", configured.delete_model, name="delete-model"),
    path("usage/", usage.show_usage, name="show-usage"),
    path("usage/export/", usage.export_usage, name="export-usage"),
    path("usage/budgets/", usage.set_budget, name="set-budget"),
    path("usage/budgets/<uuid:budget_id>/remove/", usage.remove_budget, name="remove-budget"),
]
