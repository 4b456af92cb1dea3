"""Routes of data sets, inside a workspace."""

from django.urls import path

from apps.evals import views

app_name = "evals"
DATASET = "datasets/<uuid:dataset_id>/"
urlpatterns = [
    path("datasets/", views.list_datasets, name="list-datasets"),
    path("datasets/create/", views.create_dataset, name="create-dataset"),
    path(DATASET, views.show_dataset, name="show-dataset"),
    path(f"{DATASET}rename/", views.rename_dataset, name="rename-dataset"),
    path(f"{DATASET}delete/", views.delete_dataset, name="delete-dataset"),
    path(f"{DATASET}cases/", views.add_case, name="add-case"),
    path("datasets/cases/<uuid:case_id>/delete/", views.delete_case, name="delete-case"),
]
