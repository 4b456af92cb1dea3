"""Addresses of widgets in the API."""

from django.urls import path

from apps.widgets.api import views

ONE = "widgets/<uuid:widget_id>/"
urlpatterns = [
    path("widgets/", views.Widgets.as_view(), name="widgets"),
    path(ONE, views.OneWidget.as_view(), name="widget"),
    path(f"{ONE}renew/", views.RenewWidget.as_view(), name="renew-widget"),
    path(f"{ONE}identity-secret/", views.RenewSecret.as_view(), name="renew-widget-secret"),
]
