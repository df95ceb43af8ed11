"""All tasks written by hand."""

from datasets.tasks.written.single_operators import SINGLE_OPERATORS
from datasets.tasks.written.unseen_operators import UNSEEN_OPERATOR_TASKS

WRITTEN_TASKS = SINGLE_OPERATORS

__all__ = ["UNSEEN_OPERATOR_TASKS", "WRITTEN_TASKS"]
