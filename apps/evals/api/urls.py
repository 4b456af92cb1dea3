"""Addresses of data sets in the API."""

from django.urls import path

from apps.evals.api import views

ONE = "datasets/<uuid:dataset_id>/"
urlpatterns = [
    path("datasets/", views.Datasets.as_view(), name="datasets"),
    path(ONE, views.OneDataset.as_view(), name="dataset"),
    path(f"{ONE}cases/", views.Cases.as_view(), name="cases"),
    path(f"{ONE}cases/<uuid:case_id>/", views.OneCase.as_view(), name="case"),
    path(f"{ONE}shares/", views.SharesOfDataset.as_view(), name="shares-of-dataset"),
    path(f"{ONE}shares/<uuid:share_id>/", views.OneShareOfDataset.as_view(), name="share-of-dataset"),
]
