"""Turns other projects' task collections into our task files; what they contain is data, never executed here."""
