"""What a drain would hit: plain values in, findings, a verdict and an estimate out."""
