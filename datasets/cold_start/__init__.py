"""Supervised pairs for both skills, written from the structure of generated tasks."""
