"""`fencer report`: which incident, in which form, into which file."""

import stat

import pytest

from fencer.simulation.faults import What
from tests.cli.lab import Lab


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    lab = Lab()
    lab.journal = tmp_path_factory.mktemp("journal") / "journal.db"
    lab.breaks(What.CRASH, "k8s-2", in_s=60)
    lab.passes(160, watched=True)
    return lab


@pytest.fixture(autouse=True)
def _there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_page_is_written_whole_and_for_everybody(lab, tmp_path):
    done = lab.run("report", "dd0fab59", "--html", "incident.html")
    assert (done.exit_code, done.output) == (0, "written: incident.html\n")
    path = tmp_path / "incident.html"
    assert path.read_text().startswith("<!doctype html>")
    assert path.read_text().endswith("</html>")
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_is_there_is_written_anew_and_a_link_stays_one(lab, tmp_path):
    (tmp_path / "old.html").write_text("old")
    (tmp_path / "link.html").symlink_to("old.html")
    assert lab.run("report", "--last", "--html", "link.html").exit_code == 0
    assert (tmp_path / "link.html").is_symlink()
    assert "dd0fab59" in (tmp_path / "old.html").read_text()


@pytest.mark.parametrize("words", [["--last"], ["last"], ["dd0f"]], ids=" ".join)
def test_markdown_goes_to_stdout_unless_a_file_is_named(lab, words):
    done = lab.run("report", *words, "--md")
    assert done.output.startswith("# k8s-2, incident dd0fab59\n")


def test_both_forms_at_once(lab, tmp_path):
    assert lab.run("report", "--last", "--md", "a.md", "--html", "a.html").exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "a.md"]


def test_a_page_can_go_to_stdout(lab):
    assert lab.run("report", "--last", "--html", "-").output.startswith("<!doctype html>")


def test_an_incident_that_is_not_there_is_said_with_the_newest_that_are(lab):
    done = lab.run("report", "5a5ca47e", "--md")
    assert done.exit_code == 2
    assert "5a5ca47e: no such incident" in done.stderr
    assert "The newest: dd0fab59 (k8s-2)" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["dd0fab59"], "say in which form: --html FILE, or --md"),
        (["--md"], "name one incident, or give --last"),
        (["dd0fab59", "--last", "--md"], "name one incident, or give --last"),
        (["--md", "dd0fab59"], "or is dd0fab59 one? Then put it before --md"),
    ],
    ids=" ".join,
)
def test_half_a_command_is_said(lab, words, said):
    done = lab.run("report", *words)
    assert done.exit_code == 2
    assert said in done.stderr


def test_a_file_that_cannot_be_written_is_said(lab):
    done = lab.run("report", "--last", "--html", "nowhere/incident.html")
    assert done.exit_code == 2
    assert done.stderr == "fencer: nowhere/incident.html: cannot be written: No such file or directory\n"


@pytest.mark.parametrize("form", ["--html", "--md"])
def test_a_full_disk_is_no_wrong_name(lab, form):
    done = lab.run("report", "last", form, "/dev/full")
    assert done.exit_code == 1
    assert done.stderr == "fencer: /dev/full: cannot be written: No space left on device\n"


def test_without_a_journal_it_says_what_begins_one(tmp_path):
    lab = Lab()
    lab.journal = tmp_path / "journal.db"
    done = lab.run("report", "--last", "--md")
    assert done.exit_code == 1
    assert "no journal yet" in done.stderr


def test_whoever_took_a_pods_place_is_told_if_the_cluster_is_asked(lab):
    alone, asked = (lab.run("report", "--last", "--md", *more).output for more in ((), ("--replacements",)))
    assert "demo/db-1" in alone
    [line] = [line for line in asked.splitlines() if line.startswith("| demo/db-1 ")]
    assert "k8s-1" in line or "k8s-3" in line
    assert "Ready" in line


def test_a_cluster_that_does_not_answer_is_asked_only_for_replacements(tmp_path):
    lab = Lab()
    lab.journal = tmp_path / "journal.db"
    lab.breaks(What.CRASH, "k8s-2", in_s=60)
    lab.passes(160, watched=True)
    lab.breaks(What.API_DOWN)
    assert lab.run("report", "--last", "--md").exit_code == 0
    assert lab.run("report", "--last", "--md", "--replacements").exit_code == 3
