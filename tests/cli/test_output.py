"""YAML is written by hand here, so it must read back as what it was, whatever the words are."""

import json

import yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from fencer.cli.output import emit

keys = st.text(min_size=1, max_size=30)
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.text()
    | st.sampled_from(["no", "1e3", "~", "a: b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=12,
)


def written(data, form):
    with CliRunner().isolation() as (stdout, *_):
        emit(data, form)
        return stdout.getvalue().decode()


@given(data=st.dictionaries(keys, plain, max_size=4))
def test_yaml_reads_back_as_what_was_written(data):
    assert yaml.safe_load(written(data, "yaml")) == (data or {})


@given(data=plain)
def test_json_reads_back_as_what_was_written(data):
    assert json.loads(written(data, "json")) == data
