"""The parts of a real control plane: binaries built from upstream's source, flags, certificates."""
