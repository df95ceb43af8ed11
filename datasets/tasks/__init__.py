"""Task definitions, the grammar of generated tasks, and the check that admits a task."""
