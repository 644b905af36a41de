"""What `fencer check` looks at before fencer is armed: collect → facts → judge → report."""
