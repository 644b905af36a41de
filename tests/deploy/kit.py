"""The manifests in config/deploy/, read."""

from pathlib import Path

import yaml

FOLDER = Path(__file__).parents[2] / "config" / "deploy"
EXAMPLE = "credentials.yaml"
"""No apply may touch credentials, so no kustomization names it."""
KUSTOMIZATION = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())


def documents(file):
    """Return the objects of one file."""
    return list(yaml.safe_load_all((FOLDER / file).read_text()))


def only(file):
    """Return the one object of a file."""
    [found] = documents(file)
    return found


def pod():
    """Return the pod's spec."""
    return only("deployment.yaml")["spec"]["template"]["spec"]
