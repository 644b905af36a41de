"""What an agent keeps on its own disk, behind the port `fencer.ports.StateStore`."""
