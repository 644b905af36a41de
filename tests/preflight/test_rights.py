"""The command that grants rights."""

import pytest

from fencer.preflight.rights import granting


@pytest.mark.parametrize(
    ("user", "command"),
    [
        ("system:serviceaccount:fencer:fencer", "fencer setup kubernetes | kubectl apply -f -"),
        ("system:serviceaccount:ops:fencer", "fencer setup kubernetes --namespace ops | kubectl apply -f -"),
        ("kubernetes-admin", "fencer setup kubernetes | kubectl apply -f -"),
        ("system:serviceaccount:ops:other", "fencer setup kubernetes | kubectl apply -f -"),
        ("system:serviceaccount:$(reboot):fencer", "fencer setup kubernetes | kubectl apply -f -"),
        ("(not told)", "fencer setup kubernetes | kubectl apply -f -"),
    ],
)
def test_rights_are_granted_to_the_account_in_use_and_taken_from_none(user, command):
    """The binding has one subject: applied for another namespace, it takes all rights from the account."""
    assert granting(user) == command
