"""Everything that fencer tells people: log, journal, Node Events. No decision ever asks this room."""
