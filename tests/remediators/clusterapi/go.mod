// Cluster API's resource definitions; nothing is built from it. A module of its own: beside the
// NodeHealthCheck controller it would raise versions that this one does not compile with.
module fencer.dev/remediators/clusterapi

go 1.26.0

require sigs.k8s.io/cluster-api v1.13.6
