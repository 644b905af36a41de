"""What a guest's configuration says beside its power: nothing odd in there may hide a death."""

import pytest

from fencer.hypervisors.proxmox.parse import read_config


@pytest.mark.parametrize(
    ("startup", "down_s"),
    [
        ("down=180", 180),
        ("order=1,up=30,down=60", 60),
        ("order=1,down=60,up=30", 60),
        ("1", None),
        ("order=1,up=30", None),
        ("updown=60", None),
        ("down=soon", None),
        ("down=-1", None),
        (f"down={'9' * 10}", None),
        (None, None),
        (7, None),
        (["down=60"], None),
    ],
)
def test_the_time_for_a_shutdown(startup, down_s):
    assert read_config({"startup": startup}).down_s == down_s


@pytest.mark.parametrize(
    ("hookscript", "hook"), [("local:snippets/a", "local:snippets/a"), (None, ""), ([], "")]
)
def test_the_hook(hookscript, hook):
    assert read_config({"hookscript": hookscript}).hook == hook
