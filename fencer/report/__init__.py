"""One incident, explained to people: a page that needs no network, and the same for a ticket."""
