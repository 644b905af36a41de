"""Processes that hang, shout, die or are not there end as errors in time, and leave nothing behind."""

import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from fencer.errors import HypervisorDenied, HypervisorProtocol, HypervisorUnreachable
from fencer.hypervisors.virtualbox.run import MAX_BYTES, Late, Runner
from tests.support import wait_until
from tests.support.processes import alive

LONG_S = 60.0
SHORT_S = 2.0


def python(program: str) -> Runner:
    """A runner whose command is a small program."""
    return Runner("lab", (sys.executable, "-ISc", f"import os, signal, sys, time\n{program}"))


def gone(pid: int) -> None:
    wait_until(lambda: not alive(pid), f"end of process {pid}")


def number_in(file: Path) -> int:
    return int(wait_until(lambda: file.exists() and file.read_text(), "number of a process"))


def test_what_it_says_and_how_it_ends_is_returned():
    output = python("print('out'); print('err', file=sys.stderr); sys.exit(3)").run("list", deadline_s=LONG_S)
    assert (output.code, output.stdout, output.stderr) == (3, "out\n", "err\n")


def test_it_gets_its_words_as_they_are_and_no_others():
    uuid = "47cafe86-104b-457a-b097-1defd7f3d598"
    words = ("showvminfo", uuid, "--machinereadable", "--log", "0")
    output = python("print(sys.argv[1:])").run(*words, deadline_s=LONG_S)
    assert output.stdout == f"{list(words)}\n"


@pytest.mark.parametrize(
    "word",
    ["", "k8s 1", "$(reboot)", "a;b", "a\nb", "`a`", "a'b", "../a", "--type=x", "-", "é", "a|b", "*", "a\n"],
)
def test_words_that_a_shell_could_take_for_more_are_refused(word, tmp_path):
    file = tmp_path / "ran"
    with pytest.raises(HypervisorProtocol, match=r"lab: .* no plain word"):
        python(f"open({str(file)!r}, 'w')").run("showvminfo", word, deadline_s=LONG_S)
    assert not file.exists()


def test_a_program_that_asks_finds_nobody_to_answer():
    """An ssh that wants a password would wait for ever otherwise."""
    program = (
        "print(repr(sys.stdin.read()))\ntry: os.open('/dev/tty', os.O_RDWR)\nexcept OSError: print('no tty')"
    )
    assert python(program).run("list", deadline_s=LONG_S).stdout == "''\nno tty\n"


def test_the_line_ends_of_windows_are_read_as_line_ends():
    program = "os.write(1, b'a\\r\\nb\\r\\n'); os.write(2, b'c\\r\\n')"
    output = python(program).run("list", deadline_s=LONG_S)
    assert (output.stdout, output.stderr) == ("a\nb\n", "c\n")


def test_bytes_that_are_no_text_are_replaced():
    output = python("os.write(1, b'a\\xff\\xfeb'); os.write(2, b'\\x80')").run("list", deadline_s=LONG_S)
    assert (output.stdout, output.stderr) == ("a\ufffd\ufffdb", "\ufffd")


def test_one_that_is_slow_is_waited_for():
    assert python("time.sleep(0.3); print('at last')").run("list", deadline_s=LONG_S).stdout == "at last\n"


def test_one_that_hangs_is_killed_with_its_children(tmp_path):
    parent, child = tmp_path / "parent", tmp_path / "child"
    program = (
        f"open({str(parent)!r}, 'w').write(str(os.getpid()))\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"if os.fork() == 0: open({str(child)!r}, 'w').write(str(os.getpid()))\n"
        "time.sleep(3600)"
    )
    with pytest.raises(Late, match=r"lab: `list vms` did not answer within 2\.0 s"):
        python(program).run("list", "vms", deadline_s=SHORT_S)
    gone(number_in(parent))
    gone(number_in(child))


def test_one_that_closes_its_output_and_hangs_is_late_too():
    with pytest.raises(Late):
        python("os.close(1); os.close(2); time.sleep(3600)").run("list", deadline_s=SHORT_S)


def test_one_that_is_stopped_is_late_too():
    with pytest.raises(Late):
        python("os.kill(os.getpid(), signal.SIGSTOP)").run("list", deadline_s=SHORT_S)


def test_heirs_that_hold_its_output_are_not_waited_for(tmp_path):
    """As the master process of an ssh connection does, which stays; it is not killed either."""
    file = tmp_path / "heir"
    program = (
        "print('done', flush=True)\n"
        "if os.fork() == 0:\n"
        f"    os.setsid(); open({str(file)!r}, 'w').write(str(os.getpid())); time.sleep(3600)"
    )
    assert python(program).run("list", deadline_s=LONG_S).stdout == "done\n"
    heir = number_in(file)
    assert alive(heir)
    os.kill(heir, signal.SIGKILL)


def test_output_without_end_is_cut_off():
    with pytest.raises(HypervisorProtocol, match=f"`list` prints more than {MAX_BYTES} bytes"):
        python("while True: os.write(1, b'x' * 65536)").run("list", deadline_s=LONG_S)


def test_errors_without_end_are_cut_off():
    with pytest.raises(HypervisorProtocol, match="prints more than"):
        python("while True: os.write(2, b'x' * 65536)").run("list", deadline_s=LONG_S)


def test_much_output_on_both_ways_does_not_block():
    program = "for _ in range(20): os.write(1, b'x' * 65536); os.write(2, b'y' * 65536)"
    output = python(program).run("list", deadline_s=LONG_S)
    assert (len(output.stdout), len(output.stderr)) == (20 * 65536, 20 * 65536)
    assert not output.is_cut


def test_enough_is_enough(tmp_path):
    file = tmp_path / "pid"
    program = f"open({str(file)!r}, 'w').write(str(os.getpid())); os.write(1, b'x' * 100); time.sleep(3600)"
    output = python(program).run("list", deadline_s=LONG_S, enough_bytes=100)
    assert (output.code, output.stdout, output.is_cut) == (0, "x" * 100, True)
    gone(number_in(file))


def test_as_much_as_is_enough_is_never_too_much():
    more = MAX_BYTES + 65536
    program = f"for _ in range({more // 65536 + 1}): os.write(1, b'x' * 65536)"
    assert len(python(program).run("list", deadline_s=LONG_S, enough_bytes=more).stdout) >= more


def once_slow(file: Path) -> Runner:
    """A program that hangs the first time, and is quick afterwards."""
    return python(
        f"try: os.close(os.open({str(file)!r}, os.O_CREAT | os.O_EXCL))\n"
        "except FileExistsError: print('again'); sys.exit(0)\n"
        f"open({str(file)!r} + '.pid', 'w').write(str(os.getpid())); time.sleep(3600)"
    )


def test_one_that_stands_still_is_run_again_and_the_first_answer_counts(tmp_path):
    file = tmp_path / "ran"
    assert once_slow(file).run("list", deadline_s=LONG_S, again_s=SHORT_S).stdout == "again\n"
    gone(number_in(Path(f"{file}.pid")))


def test_one_that_stands_still_is_not_run_again_where_it_was_not_asked_for(tmp_path):
    with pytest.raises(Late):
        once_slow(tmp_path / "ran").run("list", deadline_s=SHORT_S)


def test_it_is_run_again_once_only(tmp_path):
    file = tmp_path / "runs"
    program = f"open({str(file)!r}, 'a').write('x'); time.sleep(3600)"
    with pytest.raises(Late):
        python(program).run("list", deadline_s=SHORT_S * 2, again_s=0.1)
    assert file.read_text() == "xx"


def test_one_that_is_quick_is_not_run_again(tmp_path):
    file = tmp_path / "runs"
    python(f"open({str(file)!r}, 'a').write('x')").run("list", deadline_s=LONG_S, again_s=LONG_S)
    assert file.read_text() == "x"


def test_the_first_may_answer_after_the_second_was_run(tmp_path):
    file = tmp_path / "first"
    program = (
        f"try: os.close(os.open({str(file)!r}, os.O_CREAT | os.O_EXCL))\n"
        "except FileExistsError: time.sleep(3600)\n"
        "time.sleep(0.5); print('at last')"
    )
    assert python(program).run("list", deadline_s=LONG_S, again_s=0.1).stdout == "at last\n"


def test_the_signal_that_killed_it_is_told():
    program = "print('so far', flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    output = python(program).run("list", deadline_s=LONG_S)
    assert (output.code, output.stdout) == (-signal.SIGKILL, "so far\n")


def test_a_program_that_is_not_there_is_unreachable():
    with pytest.raises(HypervisorUnreachable, match="lab: cannot run /nowhere/VBoxManage: No such file"):
        Runner("lab", ("/nowhere/VBoxManage",)).run("list", deadline_s=LONG_S)


def test_a_program_that_must_not_be_run_is_denied(tmp_path):
    program = tmp_path / "VBoxManage"
    program.write_text("#!/bin/sh\n")
    with pytest.raises(HypervisorDenied, match="Permission denied"):
        Runner("lab", (str(program),)).run("list", deadline_s=LONG_S)


def test_close_ends_what_runs_and_refuses_what_comes(tmp_path):
    file = tmp_path / "pid"
    runner = python(f"open({str(file)!r}, 'w').write(str(os.getpid())); time.sleep(3600)")
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(runner.run("list", deadline_s=LONG_S).code))
    thread.start()
    pid = number_in(file)
    runner.close()
    thread.join(timeout=LONG_S)
    assert codes == [-signal.SIGKILL]
    assert not alive(pid)
    with pytest.raises(HypervisorUnreachable, match="lab: fencer is closing"):
        runner.run("list", deadline_s=LONG_S)
    runner.close()


def test_nothing_stays_open():
    def open_files() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    runner = python("sys.exit(0)")
    runner.run("list", deadline_s=LONG_S)
    before = open_files()
    for _ in range(5):
        runner.run("list", deadline_s=LONG_S)
    with pytest.raises(Late):
        python("time.sleep(3600)").run("list", deadline_s=0.2)
    # What is left open stays open; other threads of this process may hold one more file for a moment.
    wait_until(lambda: open_files() <= before, f"return to {before} open files")
