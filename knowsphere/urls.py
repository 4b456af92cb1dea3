"""Every route of the product. Each app owns its own table; here they only get their place."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

from apps.common import views

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", views.healthz, name="healthz"),
    path("readyz", views.readyz, name="readyz"),
    path("accounts/", include("apps.workspaces.account_urls")),
    path("i18n/", include("django.conf.urls.i18n")),
    path("admin/", admin.site.urls),
    path("", include("apps.workspaces.urls")),
    path("<slug:slug>/", include("apps.models.urls")),
    path("<slug:slug>/", include("apps.knowledge.urls")),
    path("<slug:slug>/", include("apps.conversations.urls")),
]
