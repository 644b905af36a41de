"""A Vagrant project's records become the `nodes:` that fencer reads back; what is wrong with them is said."""

import pytest

from fencer.errors import ConfigError
from fencer.setup.vagrant import VagrantMachine, machines_of, machines_of_all, nodes_section, projects_in
from tests.config.samples import VALID

FIRST = "0f2c1d7e-7d0a-4a58-9c3e-5d1b6a2f4e01"
SECOND = "0f2c1d7e-7d0a-4a58-9c3e-5d1b6a2f4e02"

STATUS = """\
1753710243,,metadata,machine-count,2
1753710243,,machine-id,e8ad859
1753710243,,provider-name,virtualbox
1753710243,,machine-home,{first}
1753710243,,state,running
1753710243,,machine-id,4ef0194
1753710243,,provider-name,libvirt
1753710243,,machine-home,/srv/other
1753710243,,state,running
1753710243,,machine-id,f201666
1753710243,,provider-name,virtualbox
1753710243,,machine-home,{second}
1753710243,,state,poweroff
1753710243,,ui,info,id
1753710243,,ui,info,The above shows information%!(VAGRANT_COMMA) and so on.
"""


def record(project, name, text, provider="virtualbox"):
    folder = project / ".vagrant" / "machines" / name / provider
    folder.mkdir(parents=True, exist_ok=True)
    if text is not None:
        (folder / "id").write_bytes(text.encode() if isinstance(text, str) else text)


@pytest.fixture
def project(tmp_path):
    """Two machines in VirtualBox, one that was destroyed, and one elsewhere."""
    folder = tmp_path / "kubespray"
    record(folder, "k8s-2", SECOND)
    record(folder, "k8s-1", f"{FIRST.upper()}\n")
    record(folder, "k8s-3", None)
    record(folder, "k8s-4", SECOND, provider="libvirt")
    return folder


def test_the_machines_of_a_project_are_those_that_virtualbox_has(project):
    assert machines_of(project) == (
        VagrantMachine("k8s-1", FIRST, project),
        VagrantMachine("k8s-2", SECOND, project),
    )


def test_vagrants_own_folder_will_do(project):
    """It is elsewhere where VAGRANT_DOTFILE_PATH is set."""
    assert [machine.name for machine in machines_of(project / ".vagrant")] == ["k8s-1", "k8s-2"]


def test_what_is_printed_is_read_back_by_the_configuration(project, load_text):
    nodes = nodes_section(machines_of(project), "lab")
    assert load_text(VALID + nodes).nodes == {"k8s-1": ("lab", FIRST), "k8s-2": ("lab", SECOND)}


@pytest.mark.parametrize("name", ["on", "no", "12", "1e3", "null", "y", "true", "0x1", "k8s-1.example.com"])
def test_every_name_that_a_node_may_have_is_read_back(name, load_text, tmp_path):
    nodes = nodes_section([VagrantMachine(name, FIRST, tmp_path)], "lab")
    assert load_text(VALID + nodes).nodes == {name: ("lab", FIRST)}


@pytest.mark.parametrize("make", [lambda _: None, lambda folder: folder.mkdir()])
def test_a_folder_that_is_no_project_is_said(tmp_path, make):
    make(tmp_path / "x")
    with pytest.raises(ConfigError, match="x: no Vagrant project, or `vagrant up` never ran in it"):
        machines_of(tmp_path / "x")


def test_a_project_of_another_provider_is_said(tmp_path):
    record(tmp_path, "k8s-1", FIRST, provider="libvirt")
    with pytest.raises(ConfigError, match="its machines are of libvirt"):
        machines_of(tmp_path)


def test_a_project_whose_machines_were_destroyed_is_said(tmp_path):
    record(tmp_path, "k8s-1", None)
    with pytest.raises(ConfigError, match="it has none that exist"):
        machines_of(tmp_path)


@pytest.mark.parametrize("text", ["", "e8ad859", b"\xff\xfe", "x" * 10_000, f"{FIRST}\n{SECOND}"])
def test_a_record_without_a_uuid_is_said_with_its_place(tmp_path, text):
    record(tmp_path, "k8s-1", text)
    with pytest.raises(ConfigError, match=r"machines/k8s-1/virtualbox/id: '.*' is no UUID") as caught:
        machines_of(tmp_path)
    assert str(caught.value).isprintable()


def test_a_record_that_cannot_be_read_is_said_with_its_place(tmp_path):
    record(tmp_path, "k8s-1", None)
    (tmp_path / ".vagrant/machines/k8s-1/virtualbox/id").mkdir()
    with pytest.raises(ConfigError, match=r"k8s-1/virtualbox/id: cannot be read: Is a directory"):
        machines_of(tmp_path)


def test_something_else_among_the_machines_is_said(tmp_path):
    record(tmp_path, "k8s-1", FIRST)
    (tmp_path / ".vagrant/machines/notes").write_text("")
    with pytest.raises(ConfigError, match=r"machines/notes: cannot be read: Not a directory"):
        machines_of(tmp_path)


@pytest.mark.parametrize("name", ["My_VM", "Default", "a b", "k8s-1\x1b[2J"])
def test_a_name_that_no_node_has_is_said_with_the_line_to_write(tmp_path, name):
    with pytest.raises(ConfigError, match=f"`NODE: lab/{FIRST}`") as caught:
        nodes_section([VagrantMachine(name, FIRST, tmp_path)], "lab")
    assert str(caught.value).isprintable()


def test_a_name_that_no_hypervisor_has_is_said(tmp_path):
    with pytest.raises(ConfigError, match="cannot be a hypervisor's name"):
        nodes_section([VagrantMachine("k8s-1", FIRST, tmp_path)], "My lab")


def test_two_machines_of_one_name_are_said(tmp_path):
    machines = [VagrantMachine("k8s-1", uuid, tmp_path / uuid[-2:]) for uuid in (FIRST, SECOND)]
    with pytest.raises(ConfigError, match=r"two machines are called k8s-1: in .*/01 and in .*/02"):
        nodes_section(machines, "lab")


def test_the_global_status_names_projects_once_and_only_virtualboxs(tmp_path):
    twice = STATUS.format(first=tmp_path, second=tmp_path)
    assert projects_in(twice) == (tmp_path,)


def test_a_comma_in_a_folder_is_put_back():
    status = STATUS.format(first="/srv/a%!(VAGRANT_COMMA)b", second="/srv/c")
    assert [str(folder) for folder in projects_in(status)] == ["/srv/a,b", "/srv/c"]


@pytest.mark.parametrize("text", ["", "id name provider state directory\n", "1,,ui,info,id\n"])
def test_what_is_no_global_status_is_said(text):
    with pytest.raises(ConfigError, match="it has no line with metadata"):
        projects_in(text)


def test_a_global_status_without_machines_of_virtualbox_is_said():
    with pytest.raises(ConfigError, match="names no VirtualBox machine"):
        projects_in("1753710243,,metadata,machine-count,0\n")


def test_projects_that_are_gone_are_told_and_left_out(project, tmp_path):
    skipped: list[str] = []
    machines = machines_of_all([tmp_path / "gone", project], skipped.append)
    assert [machine.name for machine in machines] == ["k8s-1", "k8s-2"]
    assert len(skipped) == 1
    assert "gone: no Vagrant project" in skipped[0]


def test_no_project_left_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match="none of the projects"):
        machines_of_all([tmp_path / "gone"], lambda _: None)
