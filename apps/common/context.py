"""What every template knows besides Django's own."""

from django.conf import settings
from django.http import HttpRequest

THEMES = ("light", "dark")


def site(request: HttpRequest) -> dict[str, object]:
    """Give the chosen theme (empty: the reader's system decides) and what this server offers."""
    chosen = request.COOKIES.get("ks_theme", "")
    return {
        "theme": chosen if chosen in THEMES else "",
        "lite": settings.LITE,
        "signup": settings.SIGNUP,
        "oidc_name": settings.OIDC_NAME if settings.OIDC_SERVER_URL else "",
        "sends_mail": settings.SENDS_MAIL,
        "largest_file_mb": settings.MAX_UPLOAD_BYTES >> 20,
        "largest_form_mb": settings.DATA_UPLOAD_MAX_MEMORY_SIZE >> 20,
    }
