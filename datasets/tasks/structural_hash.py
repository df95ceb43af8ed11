"""A hash of what a reference program computes, blind to names, constants, sizes and layout of the text.

The forward method is executed symbolically: assignments are substituted, `torch.relu(x)`, `F.relu(x)`, `x.relu()` and
an `nn.ReLU` module become one word, commutative operands are sorted, numbers become `#`. Two programs with equal hash
compose the same operators in the same way.
"""

import ast
import hashlib

_BINARY = {"Add": "add", "Sub": "sub", "Mult": "mul", "Div": "div", "Pow": "pow", "MatMult": "matmul", "Mod": "mod"}
_VALUE_CHARACTERS_MAX = 4096
_COMMUTATIVE = {"add", "mul", "maximum", "minimum"}


class _Canonical:
    """Turns expressions into canonical text under an environment of variables and modules."""

    def __init__(self, modules: dict[str, str], arguments: list[str]) -> None:
        self._modules = modules
        self._values = {name: f"input{index}" for index, name in enumerate(arguments)}

    def assign(self, target: ast.expr, text: str) -> None:
        if isinstance(target, ast.Tuple):
            for index, element in enumerate(target.elts):
                self.assign(element, f"item({text},{index})")
        else:
            # A value that is used twice in each of many statements would double with each.
            is_long = len(text) > _VALUE_CHARACTERS_MAX
            self._values[ast.unparse(target)] = hashlib.sha256(text.encode()).hexdigest() if is_long else text

    def text(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant):
            return (
                "#" if isinstance(node.value, (int, float)) and not isinstance(node.value, bool) else repr(node.value)
            )
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._name(node)
        if isinstance(node, ast.BinOp):
            return _apply(_BINARY.get(type(node.op).__name__, "op"), [self.text(node.left), self.text(node.right)])
        if isinstance(node, ast.UnaryOp):
            return self._unary(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, (ast.Tuple, ast.List)):
            return _apply("list", [self.text(element) for element in node.elts])
        return ast.unparse(node)

    def _name(self, node: ast.Name | ast.Attribute) -> str:
        text = ast.unparse(node)
        if text in self._values:
            return self._values[text]
        if text.startswith("self."):
            return self._modules.get(text, "#")
        if isinstance(node, ast.Attribute):
            return _apply(node.attr, [self.text(node.value)])
        return text

    def _unary(self, node: ast.UnaryOp) -> str:
        inner = self.text(node.operand)
        return inner if inner == "#" else _apply("neg", [inner])

    def _call(self, node: ast.Call) -> str:
        arguments = [self.text(argument) for argument in node.args]
        arguments += [f"{k.arg}={self.text(k.value)}" for k in node.keywords]
        if not isinstance(node.func, ast.Attribute):
            return _apply(self.text(node.func), arguments)
        owner = ast.unparse(node.func.value)
        if owner == "self":
            return _apply(self._modules.get(ast.unparse(node.func), node.func.attr), arguments)
        if owner not in ("torch", "F", "nn.functional", "torch.nn.functional"):
            arguments.insert(0, self.text(node.func.value))
        return _apply(node.func.attr, arguments)


def _apply(name: str, arguments: list[str]) -> str:
    name = name.lower().replace("_", "").rstrip("0123456789")
    if name in _COMMUTATIVE:
        arguments = sorted(arguments)
    return f"{name}({','.join(arguments)})"


def _modules(model: ast.ClassDef) -> dict[str, str]:
    """Attributes that the constructor assigns: the class of a module, or its tensor's kind."""
    found = {}
    for node in ast.walk(model):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            target = ast.unparse(node.targets[0])
            if target.startswith("self."):
                found[target] = ast.unparse(node.value.func).split(".")[-1]
    return found


def canonical_text(reference_source: str) -> str:
    """The canonical expression that `Model.forward` returns; ValueError when there is no such method."""
    tree = ast.parse(reference_source)
    model = next((n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Model"), None)
    if model is None:
        raise ValueError("reference has no class Model: define Model(nn.Module)")
    forward = next((n for n in model.body if isinstance(n, ast.FunctionDef) and n.name == "forward"), None)
    if forward is None:
        raise ValueError("Model has no forward: define forward(self, ...)")
    canonical = _Canonical(_modules(model), [argument.arg for argument in forward.args.args[1:]])
    for statement in forward.body:
        if isinstance(statement, ast.Return) and statement.value is not None:
            return canonical.text(statement.value)
        if isinstance(statement, ast.Assign):
            canonical.assign(statement.targets[0], canonical.text(statement.value))
        else:
            return hashlib.sha256(ast.dump(forward).encode()).hexdigest()
    raise ValueError("forward returns nothing: end it with a return")


def structural_hash(reference_source: str) -> str:
    """16 hexadecimal digits."""
    return hashlib.sha256(canonical_text(reference_source).encode()).hexdigest()[:16]
