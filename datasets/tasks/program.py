"""The structure of a generated task, and its rendering as a KernelBench reference program."""

from dataclasses import dataclass, field

from datasets.tasks.operators import OPERATORS, Operator
from datasets.tasks.row_operators import ROW_OPERATORS, RowOperator


@dataclass(frozen=True)
class Statement:
    """One element-wise statement: an operator of the table, its constants as text, the name of its operand."""

    operator_name: str
    constants: tuple[str, ...] = ()
    operand: str = ""

    @property
    def operator(self) -> Operator:
        return OPERATORS[self.operator_name]

    def render(self, text: str, operand: str) -> str:
        """Fills a template of the operator: `{a}`, `{b}` by constants, `{y}` by `operand`."""
        for slot, constant in zip(("{a}", "{b}"), self.constants, strict=False):
            text = text.replace(slot, constant)
        return text.replace("{y}", operand)


@dataclass(frozen=True)
class Program:
    """`before` on (rows, cols); then at most one of linear, row operator, total; then `after` on what is left.

    dim is the dimension of the row operator: 1 over the columns of each row, 0 over the rows of each column.
    features is the output width of the linear layer. total is "", "mean" or "sum" over all elements.
    """

    rows: int
    cols: int
    before: tuple[Statement, ...] = ()
    row_operator_name: str = ""
    dim: int = 1
    total: str = ""
    features: int = 0
    after: tuple[Statement, ...] = field(default=())

    @property
    def row_operator(self) -> RowOperator | None:
        return ROW_OPERATORS[self.row_operator_name] if self.row_operator_name else None

    @property
    def statements(self) -> tuple[Statement, ...]:
        return self.before + self.after

    @property
    def operators(self) -> list[str]:
        """Names in the order of the program; the parts that a combination is made of."""
        middle = [name for name in (self.row_operator_name, self.total and f"total_{self.total}") if name]
        if self.row_operator_name and self.dim == 0:
            middle = [self.row_operator_name + "_of_columns"]
        if self.features:
            middle.append("linear")
        before = [statement.operator_name for statement in self.before]
        return before + middle + [statement.operator_name for statement in self.after]

    @property
    def family(self) -> str:
        if self.features:
            return "product"
        if self.total:
            return "loss"
        if self.row_operator is not None:
            kind = "reduction" if self.row_operator.is_reduction else "normalisation"
            return "column_reduction" if self.dim == 0 else kind
        flat = all(statement.operator.operand in ("", "full") for statement in self.statements)
        return "elementwise" if flat else "broadcast"

    @property
    def parameter_shapes(self) -> dict[str, str]:
        """Parameters besides the linear layer's, in the order of the state dictionary; shape as text."""
        width = self.features or self.cols
        kinds = [s.operand for s in self.statements if s.operator.operand == "parameter"]
        return {name: str(width) for name in kinds}

    @property
    def input_shapes(self) -> dict[str, str]:
        """The arguments of forward in order, with their shapes as text."""
        width = self.features or self.cols
        shapes = {"x": f"{self.rows}, {self.cols}"}
        for statement in self.statements:
            full_width = self.cols if statement in self.before else width
            text = {"full": f"{self.rows}, {full_width}", "row": f"{full_width}", "column": f"{self.rows}, 1"}
            if statement.operator.operand in text:
                shapes[statement.operand] = text[statement.operator.operand]
        return shapes


def _torch_lines(program: Program) -> list[str]:
    lines = [f"x = {s.render(s.operator.torch, s.operand)}" for s in program.before]
    if program.features:
        lines.append("x = self.linear(x)")
    if program.row_operator is not None:
        lines.append("x = " + program.row_operator.torch.replace("{d}", str(program.dim)))
    if program.total:
        lines.append(f"x = x.{program.total}()")
    return lines + [f"x = {s.render(s.operator.torch, s.operand)}" for s in program.after]


def _constructor_lines(program: Program) -> list[str]:
    lines = [f"self.{name} = nn.Parameter(torch.rand({shape}))" for name, shape in program.parameter_shapes.items()]
    if program.features:
        lines.append(f"self.linear = nn.Linear({program.cols}, {program.features})")
    if not lines:
        return []
    body = ["super().__init__()", *lines]
    return ["    def __init__(self):", *("        " + line for line in body), ""]


def render_reference(program: Program) -> str:
    """The reference program as text: imports, `Model`, `get_inputs`, `get_init_inputs`."""
    forward = _torch_lines(program)
    imports = ["import torch", "import torch.nn as nn"]
    if any("F." in line for line in forward):
        imports.append("import torch.nn.functional as F")
    scale = " * torch.rand(1)" if program.total else ""  # else a mean over a million samples is nearly a constant
    inputs = ", ".join(f"torch.randn({shape}){scale}" for shape in program.input_shapes.values())
    return "\n".join(
        [
            *imports,
            "",
            "class Model(nn.Module):",
            *_constructor_lines(program),
            f"    def forward(self, {', '.join(program.input_shapes)}):",
            *("        " + line for line in forward),
            "        return x",
            "",
            "def get_inputs():",
            f"    return [{inputs}]",
            "",
            "def get_init_inputs():",
            "    return []",
            "",
        ]
    )
