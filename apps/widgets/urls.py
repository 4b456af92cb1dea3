"""Routes of widgets: the owner's, inside a workspace, and what other sites load."""

from django.urls import path

from apps.widgets.views import public, settings

app_name = "widgets"
WIDGET = "widgets/<uuid:widget_id>/"
urlpatterns = [
    path("widgets/", settings.list_widgets, name="list-widgets"),
    path("widgets/create/", settings.create_widget, name="create-widget"),
    path(WIDGET, settings.show_widget, name="show-widget"),
    path(f"{WIDGET}change/", settings.change_widget, name="change-widget"),
    path(f"{WIDGET}renew-secret/", settings.renew_secret, name="renew-secret"),
    path(f"{WIDGET}renew-id/", settings.renew_id, name="renew-id"),
    path(f"{WIDGET}delete/", settings.delete_widget, name="delete-widget"),
    path(f"{WIDGET}transcripts/", settings.list_transcripts, name="list-transcripts"),
    path(f"{WIDGET}transcripts/<uuid:conversation_id>/", settings.show_transcript, name="show-transcript"),
]
PUBLIC = "widget/<str:public_id>/"
for_sites = [
    path("widget.js", public.script, name="script"),
    path(PUBLIC, public.show_frame, name="frame"),
    path(f"{PUBLIC}greet/", public.greet, name="greet"),
    path(f"{PUBLIC}session/", public.open_session, name="open-session"),
    path(f"{PUBLIC}renew/", public.renew_session, name="renew-session"),
    path(f"{PUBLIC}history/", public.show_history, name="show-history"),
    path(f"{PUBLIC}again/", public.start_again, name="start-again"),
    path(f"{PUBLIC}turns/<uuid:turn_id>/sources/<int:n>/", public.show_excerpt, name="show-excerpt"),
]
