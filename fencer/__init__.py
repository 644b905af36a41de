"""fencer: a hypervisor-aware fencing agent for Kubernetes nodes that are virtual machines."""

DISTRIBUTION = "fencer-agent"
"""What is installed: on PyPI ``fencer`` is a stranger's tool. Command and module are called ``fencer``."""
