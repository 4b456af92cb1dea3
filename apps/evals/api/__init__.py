"""The REST API of data sets."""
