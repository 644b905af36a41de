"""``fencer setup shell``: completion for shells, `kubectl fencer`, and keys for k9s."""

from __future__ import annotations

import click

from fencer.cli.render import say_file

FILES = {
    "bash": "completions/fencer.bash",
    "zsh": "completions/_fencer",
    "fish": "completions/fencer.fish",
    "kubectl": "kubectl/kubectl-fencer",
    "kubectl-complete": "kubectl/kubectl_complete-fencer",
    "k9s": "k9s/plugins.yaml",
}
"""What may be asked for, and the file that comes with fencer."""


@click.command(
    short_help="Print completion for a shell, or a plugin of kubectl or k9s.",
    epilog="\b\nExamples:\n  fencer setup shell bash > ~/.local/share/bash-completion/completions/fencer\n"
    "  fencer setup shell zsh > ~/.zfunc/_fencer\n"
    "  fencer setup shell fish > ~/.config/fish/completions/fencer.fish\n"
    "  fencer setup shell kubectl > ~/.local/bin/kubectl-fencer\n"
    "  fencer setup shell kubectl-complete > ~/.local/bin/kubectl_complete-fencer\n"
    "  fencer setup shell k9s > ~/.config/k9s/plugins.yaml",
)
@click.argument("what", type=click.Choice(tuple(FILES)))
def shell(what: str) -> None:
    """Print what makes fencer handy in a shell, in kubectl, or in k9s. Debian's package brings all but k9s.

    Completion knows nodes, hosts, scenarios and incidents. The two for kubectl must be on PATH, and
    executable.
    """
    from fencer.setup.files import packaged  # noqa: PLC0415 - as others are

    say_file(packaged(FILES[what]).decode())
