"""For mkdocs: links that lead out of docs/ go to the sources, or are plain text if those are nowhere."""

from __future__ import annotations

import re
from typing import Any

_OUT = re.compile(r"\[([^\]]+)\]\(((?:\.\./|adapter-example)[^()\s]*)\)")


def on_page_markdown(markdown: str, *, config: Any, **_: Any) -> str:
    """Rewrite the links of a page; mkdocs calls this, and checks those that are left.

    Args:
        markdown: The page, which lies in docs/ itself.
        config: mkdocs' own; its ``repo_url`` says where the sources are.
    """
    sources = (config.repo_url or "").rstrip("/")

    def instead(link: re.Match[str]) -> str:
        text, path = link.groups()
        path = path.removeprefix("../") if path.startswith("../") else f"docs/{path}"
        return f"[{text}]({sources}/blob/HEAD/{path})" if sources else text

    return _OUT.sub(instead, markdown)
