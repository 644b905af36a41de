"""What can be looked at over HTTP: metrics, health and the status page. It only reads."""
