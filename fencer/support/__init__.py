"""What `fencer support-bundle` is made with: an archive, and the sieve that keeps secrets out of it."""
