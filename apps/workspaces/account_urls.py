"""The routes of django-allauth that we offer, under its own names; the others do not exist here."""

from allauth.account import views
from allauth.socialaccount import views as social_views
from django.urls import include, path, re_path

urlpatterns = [
    path("login/", views.login, name="account_login"),
    path("logout/", views.logout, name="account_logout"),
    path("signup/", views.signup, name="account_signup"),
    path("2fa/", include("allauth.mfa.urls")),
    path("sso/", include("allauth.socialaccount.providers.openid_connect.urls")),
    path("sso/cancelled/", social_views.login_cancelled, name="socialaccount_login_cancelled"),
    path("sso/error/", social_views.login_error, name="socialaccount_login_error"),
    path("sso/signup/", social_views.signup, name="socialaccount_signup"),
    path("reauthenticate/", views.reauthenticate, name="account_reauthenticate"),
    path("reauthenticate/code/", views.request_reauthentication_code, name="account_request_reauthentication_code"),
    path(
        "reauthenticate/code/confirm/",
        views.confirm_reauthentication_code,
        name="account_confirm_reauthentication_code",
    ),
    path("confirm-email/", views.email_verification_sent, name="account_email_verification_sent"),
    re_path(r"^confirm-email/(?P<key>[-:\w]+)/$", views.confirm_email, name="account_confirm_email"),
    path("inactive/", views.account_inactive, name="account_inactive"),
    path("password/change/", views.password_change, name="account_change_password"),
    path("password/set/", views.password_set, name="account_set_password"),
    path("password/reset/", views.password_reset, name="account_reset_password"),
    path("password/reset/done/", views.password_reset_done, name="account_reset_password_done"),
    re_path(
        r"^password/reset/key/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>.+)/$",
        views.password_reset_from_key,
        name="account_reset_password_from_key",
    ),
    path("password/reset/key/done/", views.password_reset_from_key_done, name="account_reset_password_from_key_done"),
]
