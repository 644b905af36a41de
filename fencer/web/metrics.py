"""Metrics, in the format that Prometheus reads."""

import prometheus_client  # noqa: F401
