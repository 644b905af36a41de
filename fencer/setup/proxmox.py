"""The `pveum` lines for fencer's own user and token on Proxmox VE, with no right too many. Pure.

A token with privilege separation has only the rights that its user *and* itself have, so each grant is made
twice. A grant on a deeper path *replaces* inherited ones, so the role for power is never granted alone. The
lines can be run again to change the rights, and then these are exactly the ones that are asked for; a secret
is kept, because Proxmox shows it only once.

Source: pve-docs of Proxmox VE 8 and 9, pveum.adoc (inheritance, separated tokens); pve-access-control for the
rest. What is refused the second time: src/PVE/API2/Role.pm, User.pm; what is not, and how grants are listed
(path, propagate, roleid, type, ugid): ACL.pm. A user's grants go
with it, a token's mean nothing without it: src/PVE/AccessControl.pm 9.1.1, delete_user_acl,
parse_user_config. Of rights, VM.Monitor is gone since libpve-access-control 9.0.2, and VM.GuestAgent.* came
with 9.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fencer.errors import ConfigError

AUDIT = "FencerAudit"
POWER = "FencerPower"

PRIVILEGES = {AUDIT: ("Sys.Audit", "VM.Audit", "Pool.Audit"), POWER: ("VM.PowerMgmt",)}
"""Role → privileges. The same on 8 and 9: fencer uses none of the renamed ones.

Pool.Audit is for `power: {pool: NAME}`: without it the pools of guests are not shown.
"""

NOT_NEEDED = {
    8: "VM.Monitor is not among them: it would open every guest's monitor, and is gone in 9.",
    9: "VM.GuestAgent.* is not among them: fencer asks no guest agent, and 8 does not know it.",
}

_TOKEN_ID = re.compile(r"([^\s!@/:,]+@[A-Za-z][A-Za-z0-9._-]+)!([A-Za-z][A-Za-z0-9._-]+)")
_POOL = re.compile(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+){0,2}")


@dataclass(frozen=True, slots=True)
class Account:
    """The account to make, and its purpose.

    Attributes:
        token_id: ``USER@REALM!ID``, as the configuration has it.
        token_file: Where the configuration expects the token's secret.
        power: May stop and start guests as well.
        pool: Only those of this pool; None: all.
        version: The major version of Proxmox VE, 8 or 9.
        new_token: Delete the token and make it again: its secret was lost, or known to somebody else.
    """

    token_id: str
    token_file: Path
    power: bool = False
    pool: str | None = None
    version: int = 9
    new_token: bool = False


def pveum_lines(account: Account) -> tuple[str, ...]:
    """Return the lines for root to paste on any host of the cluster, or to pipe into ``sh -e``.

    Raises:
        ConfigError: the token's id or the pool's name cannot be one.
    """
    user, token = parts_of(account.token_id)
    if account.pool is not None and not _POOL.fullmatch(account.pool):
        raise ConfigError(f"--pool: {account.pool!r} cannot be the name of a pool")
    roles = (AUDIT, POWER) if account.power else (AUDIT,)
    return (
        f"# Proxmox VE {account.version}: as root, on any host; pasted, or piped into `sh -e`. It may be "
        "run again.",
        f"# {NOT_NEEDED[account.version]}",
        *(_made("role", f"{role} --privs {shlex.quote(' '.join(PRIVILEGES[role]))}") for role in roles),
        _made("user", f"{shlex.quote(user)} --comment 'fencer, no password'"),
        "# The secret is shown only now: it goes straight into the file, and nobody else may read that.",
        *_token_lines(account, user, token),
        *_less_power(account, user),
        "# A token has only rights that its user has as well: every grant is made to both.",
        *_grants("/", (AUDIT,), user, account.token_id),
        *_power_lines(account, user),
        "# To see what it may do now:",
        f"pveum user token permissions {shlex.quote(user)} {shlex.quote(token)}",
        f"# To take all of it back: fencer setup proxmox --remove --token-id {shlex.quote(account.token_id)} "
        f"--token-file {shlex.quote(str(account.token_file))} | sh -e",
    )


def removal_lines(account: Account, looked: str) -> tuple[str, ...]:
    """Return what takes back all that `pveum_lines` ever made, also when it is run again.

    A user with another token keeps its grants, which that token may need; a role that is granted to somebody
    else stays, too. Deleting a user removes its grants, and the grants of a deleted token have no effect.

    Args:
        account: The account, with power or without.
        looked: A sentence on where was looked before, and that nothing is left there.

    Raises:
        ConfigError: the token's id cannot be one.
    """
    user, token = parts_of(account.token_id)
    whose, kept = shlex.quote(user), shlex.quote(f"{user} is kept: it has other tokens")
    return (
        "# Proxmox VE: as root, on any host; pasted, or piped into `sh -e`. It may be run again.",
        f"# {looked}",
        "# Stop every fencer that has this token first. Without it they are blind.",
        "users=$(pveum user list --output-format json)",
        f"if {_told('users', 'userid', user)}; then",
        f"    tokens=$(pveum user token list {whose} --output-format json)",
        f"    if {_told('tokens', 'tokenid', token)}; then",
        f"        pveum user token delete {whose} {shlex.quote(token)}",
        f"        tokens=$(pveum user token list {whose} --output-format json)",
        "    fi",
        '    if printf %s "$tokens" | grep -qF tokenid; then',
        f"        echo {kept}",
        "    else",
        f"        pveum user delete {whose}",
        "    fi",
        "fi",
        "grants=$(pveum acl list --output-format json)",
        "roles=$(pveum role list --output-format json)",
        *(line for role in (AUDIT, POWER) for line in _role_removal(role)),
        "# Where fencer runs:",
        f"rm -f {shlex.quote(str(account.token_file))}",
    )


def _role_removal(role: str) -> Iterator[str]:
    yield f"if {_told('grants', 'roleid', role)}; then"
    yield f"    echo {shlex.quote(f'{role} is kept: it is granted to somebody else')}"
    yield f"elif {_told('roles', 'roleid', role)}; then"
    yield f"    pveum role delete {role}"
    yield "fi"


def _told(variable: str, key: str, value: str) -> str:
    """Return what succeeds where pveum's JSON in a variable, which has no spaces, tells this."""
    quoted = shlex.quote(f'"{key}":"{value}"')
    return f'printf %s "${variable}" | grep -qF {quoted}'


def parts_of(token_id: str) -> tuple[str, str]:
    """Return the user, and the token's own id, of ``USER@REALM!ID``.

    Raises:
        ConfigError: it is not like that.
    """
    parts = _TOKEN_ID.fullmatch(token_id)
    if parts is None:
        # It is not shown: people write the secret behind it, as in Proxmox' header.
        raise ConfigError("--token-id: must be USER@REALM!ID like fencer@pve!agent, and nothing else")
    return parts[1], parts[2]


def _made(kind: str, words: str) -> str:
    """Change an existing object, or make it: `add` refuses existing ones."""
    return f"pveum {kind} modify {words} 2>/dev/null || pveum {kind} add {words}"


def _token_lines(account: Account, user: str, token: str) -> Iterator[str]:
    # No jq on a fresh host; in this JSON, which has no spaces, the secret is the only UUID.
    uuid = r"[0-9a-f]\{8\}-[0-9a-f-]\{27\}"
    file = account.token_file
    target, draft = shlex.quote(str(file)), shlex.quote(f"{file}.new")
    whom = f"{shlex.quote(user)} {shlex.quote(token)}"
    known = (
        f'pveum user token list {shlex.quote(user)} --output-format json | grep -qF \'"tokenid":"{token}"\''
    )
    yield f"install -d -m 0755 {shlex.quote(str(file.parent))}"
    if account.new_token:
        yield "# From here on whoever has the old secret is blind, until it has the new file."
        yield f"if {known}; then pveum user token delete {whom}; fi"
        hint = "there is no token now. Run the same again"
        told = f"{file}: a new secret. Agents read it by themselves; elsewhere, copy it there"
    else:
        yield f"if [ -s {target} ] && {known}; then"
        yield f"    echo {shlex.quote(f'{file} is kept: its token is there')}"
        yield "else"
        hint = (
            "if the token exists: its secret was shown once. Copy the file from where it is; or, for a new "
            f"one, run `{shlex.join(_typed(account))} | sh -e`. Whoever has the old one is blind until then"
        )
        told = f"{file}: written"
    yield f"    ( umask 077; pveum user token add {whom} --privsep 1 --output-format json \\"
    yield f"        | grep -o '{uuid}' > {draft}"
    # Who could read the old one, such as the user that fencer runs as, can read this one.
    yield f"        if [ -e {target} ]; then chown --reference={target} {draft}; fi"
    yield f"        [ -s {draft} ] && mv {draft} {target} ) || {{"
    yield f"        rm -f {draft}; echo {shlex.quote(hint)} >&2; false; }}"
    yield f"    echo {shlex.quote(told)}"
    if not account.new_token:
        yield "fi"
    yield "# Then give the file to the user that fencer runs as; on another machine, copy it there first:"
    yield f"#     chown fencer: {target}"


def _typed(account: Account) -> tuple[str, ...]:
    """Return what makes the same account with a new secret."""
    power = ("--power",) if account.power else ()
    pool = ("--pool", account.pool) if account.pool is not None else ()
    where = ("--token-id", account.token_id, "--token-file", str(account.token_file))
    return ("fencer", "setup", "proxmox", "--new-token", *power, *pool, "--pve", str(account.version), *where)


def _less_power(account: Account, user: str) -> Iterator[str]:
    """Take back power that an earlier run gave elsewhere, over all guests or over another pool."""
    whom = (f'"ugid":"{user}"', f'"ugid":"{account.token_id}"')
    yield "# Power that an earlier run gave elsewhere is taken back."
    yield "grants=$(pveum acl list --output-format json)"
    yield 'for path in $(printf %s "$grants" | grep -o \'{[^}]*}\' | grep -F \'"roleid":"' + POWER + "\"' \\"
    yield f"    | grep -F {' '.join(f'-e {shlex.quote(one)}' for one in whom)} \\"
    yield """    | sed 's/.*"path":"\\([^"]*\\)".*/\\1/' | sort -u); do"""
    wanted = shlex.quote(_power_path(account) if account.power else "")
    yield f'    [ "$path" = {wanted} ] || pveum acl delete "$path" --users {shlex.quote(user)} \\'
    yield f"        --tokens {shlex.quote(account.token_id)} --roles {AUDIT},{POWER}"
    yield "done"


def _power_path(account: Account) -> str:
    return "/vms" if account.pool is None else f"/pool/{account.pool}"


def _power_lines(account: Account, user: str) -> Iterator[str]:
    if account.power:
        path = _power_path(account)
        yield f"# On {path} these roles replace what is inherited from /: the first one must be named again."
        yield from _grants(path, (AUDIT, POWER), user, account.token_id)


def _grants(path: str, roles: tuple[str, ...], user: str, token_id: str) -> Iterator[str]:
    for whom, name in (("--users", user), ("--tokens", token_id)):
        yield f"pveum acl modify {path} {whom} {shlex.quote(name)} --roles {','.join(roles)}"
