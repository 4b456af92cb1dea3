"""Every route of the product. Each app owns its own table; here they only get their place."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path, re_path

from apps.agents.api import urls as agents
from apps.common import views
from apps.conversations.api import urls as conversations
from apps.conversations.views.sharing import show_shared
from apps.evals.api import urls as evals
from apps.knowledge.api import urls as knowledge
from apps.memory.api import urls as memory
from apps.models.api import urls as models
from apps.rest.schema import SchemaView
from apps.rest.views import Nowhere
from apps.widgets.api import urls as widgets
from apps.widgets.urls import for_sites
from apps.workspaces.api import urls as workspaces
from knowsphere.operations import show_health

handler400 = "apps.rest.handler.bad_request"
api: list[URLPattern | URLResolver] = [
    path("schema/", SchemaView.as_view(), name="schema"),
    *workspaces.urlpatterns,
    *knowledge.urlpatterns,
    *models.urlpatterns,
    *memory.urlpatterns,
    *agents.urlpatterns,
    *conversations.urlpatterns,
    *widgets.urlpatterns,
    *evals.urlpatterns,
    re_path(r"", Nowhere.as_view(), name="nowhere"),
]
urlpatterns: list[URLPattern | URLResolver] = [
    path("api/v1/", include((api, "api"))),
    path("healthz", views.healthz, name="healthz"),
    path("readyz", views.readyz, name="readyz"),
    path("v1/", include("apps.interop.urls")),
    path("accounts/", include("apps.workspaces.account_urls")),
    path("i18n/", include("django.conf.urls.i18n")),
    path("admin/health/", admin.site.admin_view(show_health), name="show-health"),
    path("admin/", admin.site.urls),
    path("shared/<str:token>/", show_shared, name="show-shared"),
    path("", include((for_sites, "widget"))),
    path("", include("apps.workspaces.urls")),
    path("<slug:slug>/", include("apps.models.urls")),
    path("<slug:slug>/", include("apps.widgets.urls")),
    path("<slug:slug>/", include("apps.knowledge.urls")),
    path("<slug:slug>/", include("apps.memory.urls")),
    path("<slug:slug>/", include("apps.agents.urls")),
    path("<slug:slug>/", include("apps.evals.urls")),
    path("<slug:slug>/", include("apps.conversations.urls")),
]
