"""The REST API of knowledge bases, documents, chunks."""
