"""Adapters of others: found, loaded and refused by what their packages say."""

import pytest

from fencer.errors import ConfigError
from fencer.hypervisors import adapters
from fencer.hypervisors.adapters import API, GROUP, Adapter, AdapterSettings, connect, installed, load
from fencer.hypervisors.guarded import Guarded
from fencer.hypervisors.plausible import LONGEST_TEXT
from fencer.ports import Hypervisor
from tests.support.adapters import install, install_example, on_path

MODULE = "somebodys_adapter"
GOOD = """
from fencer.hypervisors.adapters import Adapter
ADAPTER = Adapter(connect=lambda settings: settings, api=1)
"""


def settings(**written):
    return AdapterSettings("farm", written, now_s=lambda: 0.0)


@pytest.fixture
def package(tmp_path):
    """Installs a package with some source, and the adapter vm in it, for as long as a ``with`` lasts."""

    def made(source, *, name="somebodys", kind="vm", where=f"{MODULE}:ADAPTER"):
        folder = tmp_path / name
        install(folder, name, {GROUP: {kind: where}})
        (folder / f"{MODULE}.py").write_text(source)
        return on_path(folder)

    return made


def test_none_is_installed_here():
    """Else the rest shows nothing."""
    assert installed() == ()


def test_installed_ones_are_named_and_not_loaded(package):
    with package("raise RuntimeError('loaded')"):
        assert installed() == ("vm",)


def test_one_is_connected_with_the_guard_before_it(tmp_path):
    with on_path(*install_example(tmp_path)):
        hypervisor = connect("cells", settings(farm="/srv/farm"))
    assert isinstance(hypervisor, Guarded)
    assert hypervisor.endpoint == "farm"


def test_the_example_is_of_this_api(tmp_path):
    with on_path(*install_example(tmp_path)):
        assert load("farm", "cells").api == API


def test_a_type_that_nobody_brings_is_refused_with_what_there_is(package):
    with pytest.raises(
        ConfigError, match=r"^farm: no installed package brings an adapter of type vm \(there is none"
    ):
        connect("vm", settings())
    with (
        package(GOOD),
        pytest.raises(ConfigError, match=r"of type other \(there is vm\). Install it beside fencer"),
    ):
        connect("other", settings())


def test_two_packages_with_one_name_are_refused_by_their_names(package):
    both = r"^farm: mine 1.0 and yours 1.0 each bring an adapter of type vm: uninstall all but one"
    with package(GOOD, name="mine"), package(GOOD, name="yours"), pytest.raises(ConfigError, match=both):
        connect("vm", settings())


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            "import no_such_module",
            "cannot be loaded from somebodys_adapter:ADAPTER: ModuleNotFoundError: No module",
        ),
        ("this is no Python", "cannot be loaded from somebodys_adapter:ADAPTER: SyntaxError"),
        ("raise SystemExit('bye')", "cannot be loaded from somebodys_adapter:ADAPTER: SystemExit: bye"),
        ("", "cannot be loaded from somebodys_adapter:ADAPTER: AttributeError"),
        (
            "ADAPTER = print",
            "somebodys_adapter:ADAPTER is a builtin_function_or_method, not a fencer.hypervisors.ad",
        ),
        (
            GOOD.replace("api=1", "api=2"),
            f"was written for API 2 of adapters, this fencer has {API}: install",
        ),
        (
            GOOD.replace("api=1", "api=type('Odd', (), {'__ne__': lambda *_: False})()"),
            f"was written for API Odd, no number, of adapters, this fencer has {API}: install",
        ),
        (
            GOOD.replace("lambda settings: settings", "None"),
            "its `connect` cannot be called, it is of type NoneType",
        ),
    ],
)
def test_one_that_cannot_be_used_is_refused_with_why(package, source, said):
    with package(source), pytest.raises(ConfigError) as caught:
        connect("vm", settings())
    assert str(caught.value).startswith("farm: the adapter of type vm by somebodys 1.0")
    assert said in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        ("ConfigError('port: a number')", "farm: port: a number"),
        ("KeyError('url')", "farm: the adapter of type vm cannot be made of its settings: KeyError: 'url'"),
        (
            "ValueError('a\\nb')",
            "farm: the adapter of type vm cannot be made of its settings: ValueError: a\\nb",
        ),
        ("SystemExit(0)", "farm: the adapter of type vm cannot be made of its settings: SystemExit: 0"),
        (
            "type('Odd', (Exception,), {'__str__': lambda _: 1 / 0})()",
            "farm: the adapter of type vm cannot be made of its settings: Odd: (what it says cannot be told: "
            "ZeroDivisionError)",
        ),
        ("ConfigError('x' * 10**7)", f"farm: {'x' * LONGEST_TEXT}… (10000000 characters)"),
    ],
)
def test_what_it_says_of_its_settings_is_said(package, raised, said):
    source = f"""
from fencer.errors import ConfigError
from fencer.hypervisors.adapters import Adapter
def connect(settings):
    raise {raised}
ADAPTER = Adapter(connect=connect, api=1)
"""
    with package(source), pytest.raises(ConfigError) as caught:
        connect("vm", settings())
    assert str(caught.value) == said


def test_what_is_no_hypervisor_is_refused(package):
    source = GOOD.replace("lambda settings: settings", "lambda settings: None")
    with (
        package(source),
        pytest.raises(ConfigError, match=r"^farm: .*made a NoneType, .* it has no describe"),
    ):
        connect("vm", settings())


@pytest.mark.parametrize("name", ["read", "subscribe", "nudge", "attend", "close"])
def test_an_adapter_that_lacks_one_method_is_refused_with_its_name(package, name):
    methods = [method for method in dir(Hypervisor) if not method.startswith("_")]
    made = ", ".join(f"'{method}': print" for method in methods if method != name)
    source = GOOD.replace("lambda settings: settings", f"lambda settings: type('Most', (), {{{made}}})()")
    with package(source), pytest.raises(ConfigError, match=rf"^farm: .*made a Most, .* it has no {name}$"):
        connect("vm", settings())


def test_what_cannot_even_be_looked_at_is_no_hypervisor(package):
    source = GOOD.replace(
        "lambda settings: settings",
        "lambda settings: type('Odd', (), {'sweep': property(lambda _: 1 / 0)})()",
    )
    with (
        package(source),
        pytest.raises(ConfigError, match=r"^farm: .*made a Odd, .* no describe, sweep, read"),
    ):
        connect("vm", settings())


@pytest.mark.parametrize("farm", [None, 7, "relative/path"])
def test_the_example_refuses_what_it_cannot_use(tmp_path, farm):
    with (
        on_path(*install_example(tmp_path)),
        pytest.raises(ConfigError, match=r"^farm: a farm of cells takes one"),
    ):
        connect("cells", settings(farm=farm))


def test_an_adapter_cannot_be_named_without_its_api():
    with pytest.raises(TypeError, match="api"):
        Adapter(connect=adapters.connect)
