"""Run as a program: HTML on standard input, its title and main text as JSON on standard output.

A process of its own, because a hostile page can keep the library busy for long: it can be killed, and it
holds up nobody else meanwhile. Standard library and trafilatura only.
"""

import json
import resource
import sys

MEMORY_BYTES, CPU_S = 1 << 30, 20
TEXT = 400_000  # characters


def main() -> None:
    """Read, extract, write."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    import trafilatura

    html = sys.stdin.buffer.read()
    found = trafilatura.extract_with_metadata(
        html, output_format="markdown", include_comments=False, include_tables=True, include_links=False, fast=True
    )
    title, text = (found.title or "", found.text or "") if found else ("", "")
    if not text:
        text = trafilatura.html2txt(html) or ""
    sys.stdout.buffer.write(json.dumps({"title": title[:300], "text": text[:TEXT]}).encode())


if __name__ == "__main__":
    main()
