"""The stories of `fencer demo`, by what they are about: deaths, traps, witnesses, returns."""
