"""For mkdocs: the website begins with the README, and links that lead out of docs/ lead somewhere.

They go to the sources, or are plain text where nobody says where those are (``repo_url``).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]
_OUT = re.compile(r"\[([^\]]+)\]\(((?:\.\./|adapter-example)[^()\s]*)\)")


def on_files(files: Any, *, config: Any) -> Any:
    """Add the README, and the list of pages by another name than on a forge; mkdocs calls this first."""
    text = re.sub(r"\]\((?!docs/|#|\w+:)", "](../", (ROOT / "README.md").read_text(encoding="utf-8"))
    text = re.sub(r'(\]\(|src="|srcset=")docs/', r"\1", text).replace("](README.md", "](pages.md")
    pages = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    for name, content in (("index.md", text), ("pages.md", pages)):
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, *, config: Any, **_: Any) -> str:
    """Rewrite the links of a page; mkdocs calls this, and checks those that are left.

    Args:
        markdown: The page, as if it lay in docs/ itself.
        config: mkdocs' own.
    """
    sources = (config.repo_url or "").rstrip("/")

    def instead(link: re.Match[str]) -> str:
        text, path = link.groups()
        if path.startswith("../README.md"):
            return f"[{text}]({path.replace('../README.md', 'index.md')})"
        path = path.removeprefix("../") if path.startswith("../") else f"docs/{path}"
        return f"[{text}]({sources}/blob/HEAD/{path})" if sources else text

    return _OUT.sub(instead, markdown)
