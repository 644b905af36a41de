"""The Kubernetes API behind the port `Cluster`.

`kubernetes` is the adapter, `client` the way to the servers; `answers` and `parse` read what comes back,
`patches` builds what is sent, `rights` names what RBAC must grant. Nothing is imported here, because the
client is heavy; `settings` alone is enough to speak of a cluster.
"""
