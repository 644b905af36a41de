"""A whole world in memory behind fencer's ports: guests, kubelets, control plane, hypervisor, virtual time.

Start at `stage.play` to see a scenario, at `world` for what is true, at `kubelet` for who writes too long.
"""
