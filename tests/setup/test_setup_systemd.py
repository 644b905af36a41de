"""``fencer setup systemd``: the units start the fencer that is there, and nothing is done twice."""

import os
import re
import stat
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from click.testing import CliRunner

from fencer.cli.main import cli
from fencer.errors import ConfigError
from fencer.setup import systemd
from fencer.setup.program import own_program, parts, refuse_unreachable, unreachable

PROGRAM = Path("/opt/fencer/bin/fencer")
UNITS = ("fencer.service", "fencer@.service")


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A machine's files, and a `useradd` that makes its users there, as whoever tests."""
    folder, tools = tmp_path / "root", tmp_path / "tools"
    (folder / "etc").mkdir(parents=True)
    (folder / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\n")
    tools.mkdir()
    line = f"fencer:x:{os.getuid()}:{os.getgid()}::/var/lib/fencer:/usr/sbin/nologin"
    (tools / "useradd").write_text(
        f"""#!/bin/sh
        echo "$*" >>{tmp_path}/calls
        [ "$1" = --prefix ] || exit 9
        echo {line} >>"$2/etc/passwd"
        """
    )
    (tools / "useradd").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    return folder


def run(root, *words):
    return CliRunner().invoke(cli, ["setup", "systemd", "--root", str(root), *words], prog_name="fencer")


def tree(root):
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in root.rglob("*")
    }


@pytest.mark.parametrize("instances", [False, True])
def test_the_unit_is_the_packaged_one_with_another_program(instances):
    packaged = (Path("systemd") / UNITS[instances]).read_text()
    text = systemd.unit(PROGRAM, instances=instances)
    assert "/usr/bin/fencer" not in text
    assert text.replace(str(PROGRAM), "/usr/bin/fencer") == packaged
    commands = re.findall(r"^Exec\w+=[-@:+!]*(\S+)", text, re.MULTILINE)
    assert commands[0] == str(PROGRAM)
    assert not any(one.endswith("/fencer") and one != str(PROGRAM) for one in commands)


@pytest.mark.parametrize(
    "path", ["fencer", "/opt/two words/fencer", "/opt/%i/fencer", "/opt/f;x", "/opt/a\nb"]
)
def test_a_path_that_means_more_to_systemd_is_refused(path):
    with pytest.raises(ConfigError, match="must be an absolute path of plain characters"):
        systemd.unit(Path(path))


def test_it_makes_user_folders_and_units_and_the_second_time_nothing(root):
    said = list(systemd.install(PROGRAM, root))
    assert said[0] == "user fencer: made"
    assert [line.rpartition(": ")[2] for line in said] == ["made", "made", "made", "written", "written"]
    for name in UNITS:
        file = root / "etc/systemd/system" / name
        assert f"ExecStart={PROGRAM} watch" in file.read_text()
        assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert stat.S_IMODE((root / "etc/fencer").stat().st_mode) == 0o755
    before = tree(root)
    assert all(line.endswith("is there already") for line in systemd.install(PROGRAM, root))
    assert tree(root) == before
    assert (root.parent / "calls").read_text().count("\n") == 1


def test_the_user_is_made_as_the_units_need_it(root):
    list(systemd.install(PROGRAM, root))
    told = (root.parent / "calls").read_text().split()
    assert told[:2] == ["--prefix", str(root)]
    assert told[2:] == [
        "--system", "--user-group", "--home-dir", "/var/lib/fencer", "--shell", "/usr/sbin/nologin", "fencer",
    ]  # fmt: skip


def test_what_useradd_says_is_said(root):
    (root.parent / "tools/useradd").write_text("#!/bin/sh\necho 'useradd: cannot lock' >&2; exit 10\n")
    result = run(root, "--install", "--program", "/bin/sh")
    assert result.exit_code == 2
    assert "useradd: cannot lock" in result.stderr
    assert not (root / "etc/systemd").exists()


def test_after_an_update_the_unit_is_replaced_and_the_one_before_is_kept(root):
    list(systemd.install(PROGRAM, root))
    unit = root / "etc/systemd/system/fencer.service"
    unit.write_text("somebody's")
    said = [line for line in systemd.install(PROGRAM, root) if not line.endswith("already")]
    assert said == [f"{unit}: replaced; the one before is fencer.service.old"]
    assert (unit.with_name("fencer.service.old").read_text(), unit.read_text()) == (
        "somebody's",
        systemd.unit(PROGRAM),
    )


@pytest.mark.parametrize("folder", ["usr/lib/systemd/system", "lib/systemd/system"])
def test_a_unit_of_a_package_is_not_hidden_by_another_one(root, folder):
    for name in UNITS:
        (root / folder).mkdir(parents=True, exist_ok=True)
        (root / folder / name).write_text("of the package")
    said = list(systemd.install(PROGRAM, root))
    assert sum("comes with a package, and is left alone" in line for line in said) == 2
    assert not (root / "etc/systemd/system").exists()


def test_it_takes_its_units_away_and_says_what_is_left(root):
    list(systemd.install(PROGRAM, root))
    (root / "etc/fencer/config.yaml").write_text("mine")
    result = run(root, "--remove")
    assert result.exit_code == 0
    assert list((root / "etc/systemd/system").iterdir()) == []
    assert (root / "etc/fencer/config.yaml").read_text() == "mine"
    for line in ("  rm -r /etc/fencer\n", "  rm -r /var/lib/fencer\n", "  userdel fencer\n"):
        assert line in result.stdout
    again = run(root, "--remove")
    assert again.exit_code == 0
    assert again.stdout.count(": is not there\n") == 2


def test_nobody_but_root_changes_the_machine(monkeypatch):
    if os.geteuid() == 0:
        pytest.skip("root may change it: run this test as another user")
    with pytest.raises(ConfigError, match="run it as root"):
        next(systemd.install(PROGRAM))


# -- the program --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "place", ["/root/.local/bin/fencer", "/home/eve/.local/bin/fencer", "/run/user/0/fencer"]
)
def test_a_program_that_the_unit_does_not_see_is_refused_with_what_to_type(place):
    with pytest.raises(ConfigError, match="which the unit does not see") as refused:
        refuse_unreachable(Path(place))
    assert "uv tool install --force SOURCE" in str(refused.value)
    assert "pipx install --global SOURCE" in str(refused.value)


@pytest.fixture
def folder():
    """One that everybody may enter, as pytest's are not."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_a_link_counts_for_what_it_leads_to(folder):
    """`uv tool install` puts a link on PATH, and the program into a folder of its own."""
    home = folder / "home"
    home.mkdir()
    (home / "fencer").write_text("#!/bin/sh\n")
    (home / "fencer").chmod(0o755)
    link = folder / "fencer"
    link.symlink_to(home / "fencer")
    assert unreachable([link], []) == ""
    assert unreachable([link], [home]).startswith(f"{home}/fencer is below {home}")


@pytest.mark.parametrize(
    ("above", "file", "why"),
    [
        (0o755, 0o755, ""),
        (0o700, 0o755, "only some users may enter"),
        (0o755, 0o750, "only some users may use"),
        (0o755, 0o754, "only some users may use"),
    ],
)
def test_what_others_may_not_use_is_no_program_for_them(folder, above, file, why):
    place = folder / "bin"
    place.mkdir()
    (place / "fencer").write_text("#!/bin/sh\n")
    (place / "fencer").chmod(file)
    place.chmod(above)
    assert unreachable([place / "fencer"], []).rpartition(" /")[0] == why


def test_the_python_and_the_libraries_of_this_fencer_count_as_well(monkeypatch):
    program = Path(sys.executable).with_name("fencer")
    assert parts(program)[:2] == (program, Path(sys.executable))
    assert parts(Path("/usr/bin/true"))[1:] == () or Path("/usr/bin") == Path(sys.executable).parent


def test_started_by_name_or_by_path_it_is_the_same_program(tmp_path, monkeypatch):
    (tmp_path / "fencer").write_text("#!/bin/sh\n")
    (tmp_path / "fencer").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    for started_as in ("fencer", str(tmp_path / "fencer"), "/checkout/fencer/cli/main.py"):
        monkeypatch.setattr(sys, "argv", [started_as])
        assert own_program() == tmp_path / "fencer"
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ConfigError, match="name it with --program"):
        own_program()


def test_printed_it_says_on_stderr_that_a_service_could_not_run_it(root):
    result = run(root, "--program", "/root/.local/bin/fencer")
    assert result.exit_code == 0
    assert result.stdout == systemd.unit(Path("/root/.local/bin/fencer"))
    assert "a service cannot run it" in result.stderr
    refused = run(root, "--install", "--program", "/root/.local/bin/fencer")
    assert refused.exit_code == 2
    assert not (root / "etc/systemd").exists()


@pytest.mark.parametrize(
    "words", [("--remove", "--install"), ("--install", "--instances"), ("--remove", "--program", "/x")]
)
def test_options_that_do_not_go_together(root, words):
    assert run(root, *words).exit_code == 2
