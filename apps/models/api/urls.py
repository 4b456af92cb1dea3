"""Addresses of models in the API."""

from django.urls import path

from apps.models.api import budgets, sharing, views

urlpatterns = [
    path("models/", views.Models.as_view(), name="models"),
    path("models/<uuid:model_id>/", views.OneModel.as_view(), name="model"),
    path("models/<uuid:model_id>/test/", views.TestModel.as_view(), name="test-model"),
    path("models/<uuid:model_id>/shares/", sharing.SharesOfModel.as_view(), name="shares-of-model"),
    path(
        "models/<uuid:model_id>/shares/<uuid:share_id>/",
        sharing.OneShareOfModel.as_view(),
        name="share-of-model",
    ),
    path("budgets/", budgets.Budgets.as_view(), name="budgets"),
    path("budgets/<uuid:budget_id>/", budgets.OneBudget.as_view(), name="budget"),
    path("usage/", views.Usage.as_view(), name="usage"),
]
