"""Whatever is in the file: settings or a ConfigError with places, never anything else."""

import re

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from fencer.config.document import parse
from fencer.config.load import check
from fencer.config.show import render
from fencer.errors import ConfigError
from tests.config.samples import EXAMPLES, FULL, VALID, uncommented

SOURCES = [FULL, uncommented(), *(file.read_text() for file in EXAMPLES)]
SNIPPETS = [
    *("", "null", "~", "true", "no", "-1", "0", "1e999", "5s", "999999999999999999999999"),
    *("[]", "{}", "[[]]", "{a: }", "*x", "&x 1", "!!str 1", "!!binary =", "<<: ", "%YAML 9.9", "|", ">-"),
    *("'", '"', '"\\e[2J"', '"\\ud800"', '"\\UFFFFFFFF"', "\t", "- ", "? ", ": ", "#", "---", "..."),
    *("\ufeff", "\u2028", "\u202e", "é", "lab/", "/", "qemu:///system", "https://[", "//a:b@"),
]


def judge(data: bytes, loader=None) -> None:
    """Load; anything but settings or a clean refusal fails the test."""
    try:
        loaded = check(parse(data, "f.yaml", loader) if loader else parse(data, "f.yaml"))
    except ConfigError as error:
        lines = str(error).split("\n")
        assert all(re.match(r"f\.yaml(:[1-9][0-9]*)?: \S", line) for line in lines), lines
        assert all(line.isprintable() for line in lines), lines
    else:
        assert check(parse(render(loaded).encode(), "shown")).config == loaded.config


@st.composite
def mutated(draw) -> str:
    """A file that was right, with some lines dropped, doubled, indented, cut or with other words in them."""
    lines = draw(st.sampled_from(SOURCES)).split("\n")
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(lines) - 1))
        line = lines[at]
        cut = draw(st.integers(0, len(line)))
        word = draw(st.sampled_from(SNIPPETS) | st.text(max_size=8))
        lines[at : at + 1] = draw(
            st.sampled_from(
                [
                    [],
                    [line, line],
                    [f"  {line}"],
                    [line[:cut]],
                    [line[:cut] + word + line[cut:]],
                    [f"{line.split(':')[0]}: {word}"],
                    [f"{word}:{line.partition(':')[2]}"],
                ]
            )
        ) or [""]
    return "\n".join(lines)


@given(st.binary(max_size=200))
@example(b"\xef\xbb\xbf")
@example(b"%YAML 1.1\n%YAML 1.1\n---\n")
def test_bytes(data):
    judge(data)


@given(st.text(max_size=200) | st.text(alphabet="ab:-?[]{},#&*!|>'\"%@`\\ \n\t0\u2028\ufeff", max_size=60))
def test_text(text):
    judge(text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("loader", [yaml.SafeLoader, None], ids=["pure", "default"])
@given(text=mutated())
@example(text=VALID.replace("lab", "\U00018d09lab") + "nodes: {k8s-1: lab/x}")
@example(text=f'{VALID}"\\ud800": 1\npolicy: {{poll_s: x}}')
def test_files_that_were_right_once(loader, text):
    judge(text.encode("utf-8", "surrogatepass"), loader)


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(SNIPPETS)
    | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(SOURCES), st.data())
def test_values_of_any_shape_anywhere(source, data):
    root = yaml.safe_load(source)
    within = root
    while True:
        keys = (
            sorted(within, key=str) if isinstance(within, dict) else range(len(within))
        )  # `on` reads as True
        key = data.draw(st.sampled_from(keys))
        if not isinstance(within[key], dict | list) or not within[key] or data.draw(st.booleans()):
            break
        within = within[key]
    within[key] = data.draw(values)
    judge(yaml.safe_dump(root, allow_unicode=True, sort_keys=False).encode("utf-8", "surrogatepass"))
