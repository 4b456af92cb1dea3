"""Dates in Chinese, where Django's own put a zero before the month."""

MONTH_DAY_FORMAT = "n月j日"
