"""Real callers of a remediator: medik8s' NodeHealthCheck controller, and Cluster API's resources."""
