"""The sockets: one HTTPS server a host, and the certificates they show."""
