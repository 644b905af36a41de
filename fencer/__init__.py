"""fencer: a hypervisor-aware fencing agent for Kubernetes nodes that are virtual machines."""
