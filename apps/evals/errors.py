"""Failures of evaluations."""

from django.utils.translation import gettext_lazy as _

from apps.common.errors import Conflict, KnowSphereError


class BrokenDataset(KnowSphereError):
    """A data set cannot be read; ``file``, ``line`` (0: the file as a whole) and ``reason`` say where and why."""

    code = "broken_dataset"
    status = 422
    user_message = _("The data set is broken: %(file)s, line %(line)s: %(reason)s. Nothing was run.")


class DatasetNameTaken(Conflict):
    """Two data sets of one workspace may not have the same name."""

    code = "dataset_name_taken"
    user_message = _("There is a data set called “%(name)s” in this workspace already. Choose another name.")


class UnknownEvaluation(KnowSphereError):
    """There is no evaluation of this kind."""

    code = "unknown_evaluation"
    status = 422
    user_message = _("“%(kind)s” cannot be evaluated. These can: retrieval, intent.")
