"""Addresses of models in the API."""

from django.urls import path

from apps.models.api import views

urlpatterns = [
    path("models/", views.Models.as_view(), name="models"),
    path("models/<uuid:model_id>/", views.OneModel.as_view(), name="model"),
    path("models/<uuid:model_id>/test/", views.TestModel.as_view(), name="test-model"),
    path("usage/", views.Usage.as_view(), name="usage"),
]
