"""The package for Debian, as far as its recipe tells: what is merged, what is named, and how it is started.

That it is built, and what it does on a Debian, is shown by `./dev long deb deb-systemd`.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
DEB = CHECKOUT / "config" / "deb"
BUILD = (DEB / "build").read_text()
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
LOCK = tomllib.loads((CHECKOUT / "uv.lock").read_text())["package"]
PYTHONS = re.findall(r'^pythons="(.+)"$', BUILD, re.MULTILINE)[0].split()


@pytest.fixture
def merge(monkeypatch):
    monkeypatch.syspath_prepend(DEB)
    return import_module("merge")


def following(python):
    major, minor = map(int, python.split("."))
    return f"{major}.{minor + 1}"


def test_it_is_for_the_pythons_that_it_has_libraries_for():
    assert PYTHONS[1:] == [following(python) for python in PYTHONS[:-1]]
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"
    depends = f"Depends: python3 (>= {PYTHONS[0]}), python3 (<< {following(PYTHONS[-1])})"
    assert depends in (DEB / "debian" / "control").read_text()


def test_its_version_is_that_of_the_project():
    line = next(line for line in BUILD.splitlines() if line.startswith("version="))
    said = subprocess.run(
        ["sh", "-c", f"{line}; echo $version"], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    assert said.stdout.strip() == PROJECT["version"]


def test_what_runs_for_its_build_is_fetched_by_hashes():
    """The libraries are unpacked only; hatchling makes fencer's wheel."""
    [build] = re.findall(r'"\$UV" build .*', BUILD)
    assert "--build-constraints .ci/build.txt --require-hashes" in build
    pinned = (CHECKOUT / ".ci" / "build.txt").read_text()
    names = re.findall(r"^([\w-]+)==\S+ \\\n    --hash=sha256:[0-9a-f]{64}", pinned, re.MULTILINE)
    assert names == re.findall(r"^[\w-]+(?===)", pinned, re.MULTILINE)
    assert "hatchling" in names
    for install in re.findall(r'"\$UV" pip install(?:.*\\\n)*.*', BUILD):
        by_hash = "--require-hashes --only-binary :all: -r" in install
        assert by_hash or install.endswith('--no-deps "$work"/wheel/*.whl')


def test_all_that_its_build_takes_is_there():
    told = re.sub(r"^#.*", "", BUILD, flags=re.MULTILINE).replace("$here", "config/deb")
    words = re.findall(r"(?<![\w/$}])(?:config|systemd|docs)/[\w./@*-]+", told)
    assert len(words) > 15
    assert [word for word in words if not any(CHECKOUT.glob(word.removesuffix("/.")))] == []


def test_all_that_it_installs_is_made_by_its_build():
    sources = [line.split()[0] for line in (DEB / "debian" / "fencer.install").read_text().splitlines()]
    tree = BUILD.replace("python in ", "")
    assert [source for source in sources if f'"$tree/{source.removesuffix("/*")}' not in tree] == []


def test_its_units_are_those_of_the_checkout_and_start_what_it_installs():
    for unit in ("fencer.service", "fencer@.service"):
        assert f'cp systemd/{unit} "$tree/debian/{unit}"' in BUILD
        assert "\nExecStart=/usr/bin/fencer watch " in (CHECKOUT / "systemd" / unit).read_text()
        assert "\nUser=fencer\n" in (CHECKOUT / "systemd" / unit).read_text()
    assert re.search(r"^u fencer ", (DEB / "debian" / "fencer.sysusers").read_text(), re.MULTILINE)


def test_nothing_else_needs_what_only_kubernetes_aio_needs(merge):
    """Whoever else comes to need one of them would not find it in the package."""
    for package in LOCK:
        if package["name"] not in merge.UNUSED | {"kubernetes"}:
            needed = {one["name"] for one in package.get("dependencies", [])}
            assert not needed & merge.UNUSED, package["name"]


@pytest.mark.parametrize("script", ["postinst", "prerm", "postrm"])
def test_its_scripts_are_ones_that_a_shell_can_read(script):
    path = DEB / "debian" / f"fencer.{script}"
    subprocess.run(["sh", "-n", path], check=True)
    assert "\n#DEBHELPER#\n" in path.read_text()
    assert "\nset -e\n" in path.read_text()


class Libraries:
    """What was installed for each Python."""

    def __init__(self, folder):
        self._folder = folder
        for python in PYTHONS:
            self.has(python, "lib-1.0.dist-info/METADATA", "Name: lib")
            self.has(python, "lib-1.0.dist-info/RECORD", f"lib/__init__.py,{python}")
            self.has(python, "lib/__init__.py", "import json\n")
            self.has(python, f"lib/_fast.cpython-{python.replace('.', '')}-x86_64-linux-gnu.so", "elf")

    def has(self, python, name, text):
        path = self._folder / python / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def merged(self, merge):
        target = self._folder / "target"
        merge.merge({python: self._folder / python for python in PYTHONS}, target)
        return {path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()}


@pytest.fixture
def libraries(tmp_path):
    return Libraries(tmp_path)


def test_one_folder_serves_each_python(libraries, merge):
    assert libraries.merged(merge) == {
        "lib-1.0.dist-info/METADATA",
        "lib/__init__.py",
        *(f"lib/_fast.cpython-{python.replace('.', '')}-x86_64-linux-gnu.so" for python in PYTHONS),
    }


def test_a_file_that_is_another_one_for_another_python_ends_the_build(libraries, merge):
    libraries.has("3.13", "lib/__init__.py", "import json  # of 3.13\n")
    with pytest.raises(merge.MergeError, match=r"__init__\.py: is another one for Python 3\.13"):
        libraries.merged(merge)


def test_a_library_that_is_compiled_for_some_of_them_only_ends_the_build(libraries, merge):
    libraries.has("3.12", "lib/_more.cpython-312-x86_64-linux-gnu.so", "elf")
    with pytest.raises(merge.MergeError, match=r"Python 3\.11 has no lib/_more"):
        libraries.merged(merge)


@pytest.mark.parametrize(
    "name", ["lib/_any.so", "lib/_any.abi3.so", "lib/_any.cpython-310-x86_64-linux-gnu.so"]
)
def test_one_whose_name_does_not_bind_it_to_its_python_ends_the_build(libraries, merge, name):
    libraries.has("3.11", name, "elf")
    with pytest.raises(merge.MergeError, match="is not bound to Python"):
        libraries.merged(merge)


def test_whoever_imports_what_is_left_out_ends_the_build(libraries, merge):
    for python in PYTHONS:
        libraries.has(python, "lib/web.py", "def get():\n    import aiohttp\n")
    with pytest.raises(merge.MergeError, match=r"lib/web\.py: imports aiohttp"):
        libraries.merged(merge)


def test_what_nobody_uses_is_left_out(libraries, merge):
    for python in PYTHONS:
        for name in (
            "kubernetes/aio/client.py",
            "lib/tests/test_it.py",
            "lib/it.pyi",
            "bin/lib",
            "yarl/it.py",
        ):
            libraries.has(python, name, "")
        libraries.has(python, "yarl-1.2.dist-info/METADATA", "Name: yarl")
        libraries.has(python, "yarl-1.2.dist-info/RECORD", "yarl/it.py,sha256=x,0\n../../bin/x,,\n")
    merged = libraries.merged(merge)
    assert {name.split("/")[0] for name in merged} == {"lib", "lib-1.0.dist-info"}
    assert len(merged) == 2 + len(PYTHONS)


def test_the_list_of_its_parts_names_those_that_are_there_and_the_same_twice(monkeypatch):
    monkeypatch.syspath_prepend(DEB)
    of_package = import_module("sbom").of_package
    whole = {
        "serialNumber": "urn:uuid:1",
        "metadata": {"component": {"bom-ref": "fencer"}},
        "components": [{"name": "click", "bom-ref": "click-1"}, {"name": "yarl", "bom-ref": "yarl-1"}],
        "dependencies": [{"ref": "fencer", "dependsOn": ["click-1", "yarl-1"]}, {"ref": "yarl-1"}],
    }
    told = of_package(whole, {"click"}, 1_700_000_000)
    assert [one["name"] for one in told["components"]] == ["click"]
    assert told["dependencies"] == [{"ref": "fencer", "dependsOn": ["click-1"]}]
    assert told["metadata"]["timestamp"] == "2023-11-14T22:13:20+00:00"
    again = of_package({**whole, "serialNumber": "urn:uuid:2"}, {"click"}, 1_700_000_000)
    assert json.dumps(again) == json.dumps(told)


MAIN = """
import faulthandler, json, sys
import requests
def main():
    flags = [sys.flags.isolated, faulthandler.is_enabled()]
    print(json.dumps([sys.path[0], requests.__file__, *flags, sys.argv[1:]]))
"""


@pytest.mark.parametrize("wanted", ["1", ""])
def test_its_program_takes_the_libraries_that_came_with_it(tmp_path, wanted):
    """The same library lies in the folder of the caller, which the environment names as well."""
    brought, elsewhere = tmp_path / "brought", tmp_path / "elsewhere"
    main = brought / "fencer" / "cli" / "main.py"
    packages = (brought / "fencer" / "__init__.py", main.parent / "__init__.py")
    for path in (*packages, main, brought / "requests.py", elsewhere / "requests.py"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(MAIN if path == main else "")
    text = (DEB / "fencer").read_text()
    assert text.count("/usr/lib/fencer") == 2
    first, _, rest = text.partition("\n")
    assert first == "#!/usr/bin/python3 -I"
    program = tmp_path / "program"
    program.write_text(rest.replace("/usr/lib/fencer", str(brought)))
    said = subprocess.run(
        [sys.executable, "-I", program, "check", "-o"],
        cwd=elsewhere,
        env={"PATH": os.defpath, "PYTHONPATH": str(elsewhere), "PYTHONFAULTHANDLER": wanted},
        capture_output=True,
        text=True,
        check=True,
    )
    told = [str(brought), str(brought / "requests.py"), 1, bool(wanted), ["check", "-o"]]
    assert json.loads(said.stdout) == told


def test_apprise_s_own_process_finds_what_lies_beside_fencer(tmp_path):
    """It is a process of its own, in Python's isolated mode: it does not get the path of the program."""
    child = tmp_path / "fencer" / "notify" / "apprise_child.py"
    child.parent.mkdir(parents=True)
    child.write_bytes((CHECKOUT / "fencer" / "notify" / "apprise_child.py").read_bytes())
    for name in ("apprise", "requests"):
        text = "print('found', __file__)\nclass sessions: pass\n"
        (tmp_path / f"{name}.py").write_text(text)
    said = subprocess.run(
        [sys.executable, "-I", child, "20"], input='{"urls": []}', capture_output=True, text=True, check=True
    )
    assert said.stdout.splitlines() == [f"found {tmp_path / name}.py" for name in ("apprise", "requests")]
