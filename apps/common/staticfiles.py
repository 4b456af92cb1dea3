"""Static files under names that tell their content, for production."""

from django.contrib.staticfiles.storage import HashedFilesMixin
from whitenoise.storage import CompressedManifestStaticFilesStorage


class HashedStaticFiles(CompressedManifestStaticFilesStorage):
    """WhiteNoise's storage that also rewrites the imports of our ES modules.

    Without it a page would load ``app.js`` twice, by its hashed and by its plain name, and everything
    in it would happen twice. Other packages' scripts are left alone: not all of them resolve.
    """

    support_js_module_import_aggregation = True
    _js_module_import_aggregation_patterns = (
        "js/*.js",
        HashedFilesMixin._js_module_import_aggregation_patterns[1],  # type: ignore[attr-defined]
    )
