"""What a password has to be."""

from django.contrib.auth.password_validation import MinimumLengthValidator
from django.utils.translation import ngettext


class LongEnough(MinimumLengthValidator):
    """Django's rule; its sentence for it is not translated everywhere that ours are."""

    def get_error_message(self) -> str:
        """Return what is wrong and what to do."""
        return ngettext(
            "The password is too short. Use at least %(count)d character.",
            "The password is too short. Use at least %(count)d characters.",
            self.min_length,
        ) % {"count": self.min_length}
