"""A page of HTML, taken apart for tests that ask what is in it."""

from html.parser import HTMLParser

VOID = frozenset({"meta", "link", "br", "img"})


class Outline(HTMLParser):
    """Takes a page apart: tags in order, attributes, and words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take in what opens."""
        self.tags.append(tag)
        self.attributes += [(tag, *attribute) for attribute in attrs]
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take in what is empty."""
        self.tags.append(tag)
        self.attributes += [(tag, *attribute) for attribute in attrs]

    def handle_endtag(self, tag: str) -> None:
        """Take in what closes: the innermost, or the page is broken."""
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Take in words."""
        if self._open and self._open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        """All words."""
        return " ".join(" ".join(self.words).split())

    def part(self, heading: str) -> str:
        """The words from a heading of the second level to the next one."""
        return self.text.partition(heading)[2]
