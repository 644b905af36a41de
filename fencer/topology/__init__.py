"""Which nodes, workloads and volumes would go together with one host: plain values in, findings out."""
