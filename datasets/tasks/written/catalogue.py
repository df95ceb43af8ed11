"""All tasks written by hand."""

from datasets.tasks.written.fused_chains import FUSED_CHAINS
from datasets.tasks.written.networks import NETWORKS
from datasets.tasks.written.products import PRODUCTS
from datasets.tasks.written.reductions import NORMALISATIONS, REDUCTIONS
from datasets.tasks.written.single_operators import SINGLE_OPERATORS
from datasets.tasks.written.unseen_operators import UNSEEN_OPERATOR_TASKS

WRITTEN_TASKS = (*SINGLE_OPERATORS, *FUSED_CHAINS, *REDUCTIONS, *NORMALISATIONS, *PRODUCTS, *NETWORKS)

__all__ = ["UNSEEN_OPERATOR_TASKS", "WRITTEN_TASKS"]
