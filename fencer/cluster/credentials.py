"""Our credentials: a kubeconfig for the client. If it cannot be used, the error names the place.

Only names from its content are shown: the rest may be secret.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from fencer.cluster.fields import shown
from fencer.cluster.settings import ClusterSettings
from fencer.errors import ConfigError, unreadable


def load_credentials(settings: ClusterSettings, configuration: Any) -> None:
    """Fill the client's configuration from the kubeconfig.

    Raises:
        ConfigError: it cannot be read, or used.
    """
    from kubernetes import config  # noqa: PLC0415 - heavy
    from kubernetes.config import kube_config  # noqa: PLC0415 - heavy

    path = settings.kubeconfig
    # The client takes what is in the file as it comes, so a broken one may raise any of these.
    broken = (config.ConfigException, ValueError, TypeError, KeyError, AttributeError)
    try:
        # Read here first: the client ignores a missing file, and says little about a broken one.
        content = _content(path, kube_config.yaml)
        _require_context(content, settings)
        _refuse_others_program(path, content)
        config.load_kube_config(
            str(path), context=settings.context, client_configuration=configuration, persist_config=False
        )
    except OSError as error:
        raise ConfigError(_unreadable(path, error)) from error
    except RecursionError as error:  # of the YAML reader, which goes down with what it reads
        raise ConfigError(f"{path}: no kubeconfig: nested too deep") from error
    except broken as error:
        raise ConfigError(f"{path}: no usable kubeconfig: {error}") from error


def _refuse_others_program(path: Path, content: dict[str, Any]) -> None:
    """Refuse to run, as root, what the kubeconfig of another user names: that user would be root.

    The agent's own belongs to the user that it runs as, and root types commands with it, too.
    """
    owner = path.stat().st_uid
    if os.geteuid() != 0 or owner == 0:
        return
    for item in content.get("users") or []:
        for key in {"exec", "auth-provider"} & set(item.get("user") or {}):
            raise ConfigError(
                f"{path}: names a program to run ({key}), and belongs to user {owner}: root does not run it. "
                f"Run this as that user, or: chown root {path}"
            )


def files_with_secrets(settings: ClusterSettings) -> tuple[Path, ...]:
    """Name the files that hold a kubeconfig user's key and token; empty: the kubeconfig itself holds them.

    An unusable kubeconfig names none: the code that loads it says what is wrong.

    Source: kubernetes-client/python, kubernetes/config/kube_config.py, FileOrData: data in the kubeconfig
    itself wins over a file, and paths are relative to the kubeconfig.
    """
    from kubernetes.config import kube_config  # noqa: PLC0415 - heavy

    path = settings.kubeconfig
    try:
        if not path.is_file():  # nobody writes to a pipe
            return ()
        user = _user(_content(path, kube_config.yaml), settings)
        return tuple(
            path.absolute().parent / user[file]
            for file, inside in _SECRETS.items()
            if inside not in user and user.get(file)
        )
    except (ConfigError, OSError, RecursionError, ValueError, TypeError, KeyError, AttributeError):
        return ()


_SECRETS = {"client-key": "client-key-data", "tokenFile": "token"}
"""What names a file, and what stands for it in the kubeconfig itself."""


def _user(kubeconfig: dict[str, Any], settings: ClusterSettings) -> dict[str, Any]:
    """Return the user of the chosen context; empty: it has none."""
    _require_context(kubeconfig, settings)
    contexts = {item["name"]: item["context"] for item in kubeconfig["contexts"]}
    users = {item["name"]: item["user"] for item in kubeconfig.get("users") or []}
    name = contexts[settings.context or kubeconfig.get("current-context")].get("user")
    return users[name] or {} if name else {}


def _unreadable(kubeconfig: Path, error: OSError) -> str:
    """Name the file that cannot be read, and the kubeconfig if that names it."""
    read = str(error.filename or kubeconfig)
    said = unreadable(read, error)
    return said if read == str(kubeconfig) else f"{kubeconfig}: names a file that cannot be used: {said}"


def _content(path: Path, yaml: Any) -> dict[str, Any]:
    try:
        content = yaml.safe_load(path.read_bytes())
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = str(path) if mark is None else f"{path}:{mark.line + 1}"
        raise ConfigError(
            f"{place}: no kubeconfig: not YAML: {getattr(error, 'problem', 'binary')}"
        ) from error
    if not isinstance(content, dict):
        seen = "it is empty" if content is None else "a mapping (`key: value` lines) is expected"
        raise ConfigError(f"{path}: no kubeconfig: {seen}")
    return content


def _require_context(kubeconfig: dict[str, Any], settings: ClusterSettings) -> None:
    """Refuse a context that is not there, and one without its user: the client would go on as nobody."""
    contexts = {item["name"]: item["context"] for item in kubeconfig.get("contexts") or []}
    name = settings.context or kubeconfig.get("current-context")
    if not contexts:
        raise ConfigError(f"{settings.kubeconfig}: no kubeconfig: there is no context in it")
    there = ", ".join(map(shown, contexts))
    if not name:
        text = f"has no current-context: say which one is meant. Contexts: {there}"
        raise ConfigError(f"{settings.kubeconfig}: {text}")
    if name not in contexts:
        raise ConfigError(f"{settings.kubeconfig}: no context {shown(name)}. Contexts: {there}")
    user = contexts[name].get("user")
    if user and user not in {item["name"] for item in kubeconfig.get("users") or []}:
        text = f"context {shown(name)} is of user {shown(user)}, and there is no such user"
        raise ConfigError(f"{settings.kubeconfig}: {text}")
