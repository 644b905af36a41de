"""The rules of fencing: pure values in, a decision out. No I/O, no clock, no logging, no randomness."""
