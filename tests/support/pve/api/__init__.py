"""One host's API: who asks, may they, which host answers, and what becomes of it. No sockets here."""
