"""One YAML file: its schema, its errors with lines, its defaults; the rest of fencer gets plain settings."""
