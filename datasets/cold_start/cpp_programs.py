"""Writes a task's program as a C++ candidate, in a given style. One reference statement is one C++ statement."""

import re

from datasets.cold_start.source_writer import SourceWriter
from datasets.cold_start.styles import Structure, Style
from datasets.tasks.program import Program, Statement
from datasets.tasks.row_operators import Accumulator, Pass

_FLAT = "for (long i = 0; i < n; ++i)"
_ROWS = "for (long r = 0; r < rows; ++r)"
_COLS = "for (long c = 0; c < cols; ++c)"
_INDEX = "const long i = r * cols + c;"
_TEMPORARIES = ("a", "b", "d", "e", "f", "g")


def styles_for(program: Program) -> tuple[Structure, ...]:
    """The structures that make a genuinely different program of this family."""
    if program.features:
        return (Structure.FUSED, Structure.PASSES)
    if program.total:
        return (Structure.FUSED, Structure.TEMPORARIES, Structure.COLUMNS)
    if program.row_operator is not None and program.dim == 0:
        return (Structure.FUSED, Structure.COLUMNS, Structure.TEMPORARIES)
    if program.row_operator is not None:
        return (Structure.FUSED, Structure.PASSES, Structure.TEMPORARIES, Structure.COLUMNS)
    if program.family == "elementwise":
        return (Structure.FUSED, Structure.PASSES, Structure.TEMPORARIES, Structure.BLOCKED, Structure.COLUMNS)
    return (Structure.FUSED, Structure.PASSES, Structure.TEMPORARIES, Structure.COLUMNS)


class _CppProgram:
    """One rendering of a program in a style."""

    def __init__(self, program: Program, style: Style) -> None:
        self._program, self._style = program, style
        self._out = SourceWriter()

    def write(self) -> str:
        self._pointers()
        if self._program.features:
            self._linear()
        elif self._program.total:
            self._total()
        elif self._program.row_operator is None:
            self._element_wise()
        elif self._program.dim == 0:
            self._over_rows()
        else:
            self._by_row()
        return self._out.render(self._style.simd, self._style.fast_math)

    # Pieces ----------------------------------------------------------------------------------------------------

    def _pointers(self) -> None:
        for index, name in enumerate(self._program.input_shapes):
            self._out.add(f"const float* {name} = (const float*)inputs[{index}]->data;")
        names = [*self._program.parameter_shapes, *(("weight", "offset") if self._program.features else ())]
        for index, name in enumerate(names):
            self._out.add(f"const float* {name} = (const float*)parameters[{index}]->data;")
        self._out.add(
            "float* out = (float*)outputs[0]->data;",
            "const long rows = inputs[0]->shape[0];",
            "const long cols = inputs[0]->shape[1];",
        )

    def _text(self, statement: Statement, index: str = "i", col: str = "c", row: str = "r") -> str:
        operator = statement.operator
        position = {"full": index, "row": col, "parameter": col, "column": row}.get(operator.operand, "")
        return statement.render(operator.cpp, f"{statement.operand}[{position}]")

    def _texts(self, statements: tuple[Statement, ...], index: str = "i", col: str = "c", row: str = "r") -> list[str]:
        return [self._text(statement, index, col, row) for statement in statements]

    def _simd(self, *reductions: Accumulator) -> str:
        if not self._style.simd:
            return ""
        return "simd" + "".join(f" reduction({a.operation}:{a.name})" for a in reductions)

    def _row_loop(self) -> None:
        self._out.pragma("parallel for" if self._style.threads else "")
        self._out.open(_ROWS)

    def _element(self, source: str, texts: list[str], target: str) -> None:
        self._out.add(f"float v = {source};", *texts, f"{target} = v;")

    # Element-wise ----------------------------------------------------------------------------------------------

    def _element_wise(self) -> None:
        texts = self._texts(self._program.before)
        flat = self._program.family == "elementwise"
        structure = self._style.structure
        if structure is Structure.BLOCKED:
            self._blocked()
        elif structure is Structure.FUSED:
            self._loop(flat, "x[i]", texts, "out[i]")
        elif structure is Structure.COLUMNS:
            self._column_loop("x[i]", texts, "out[i]")
        else:
            self._stages(flat, texts)

    def _stages(self, flat: bool, texts: list[str], last: str = "out") -> str:
        """One loop a statement; through temporaries or through `last` itself. Returns where the result is."""
        source = "x"
        for number, text in enumerate(texts):
            target = last
            if self._style.structure is Structure.TEMPORARIES and (number + 1 < len(texts) or last != "out"):
                target = _TEMPORARIES[number]
                self._out.add(f"std::vector<float> {target}(rows * cols);")
            self._loop(flat, f"{source}[i]", [text], f"{target}[i]", declare_n=number == 0)
            source = target
        return source

    def _loop(self, flat: bool, source: str, texts: list[str], target: str, declare_n: bool = True) -> None:
        if flat:
            if declare_n:
                self._out.add("const long n = rows * cols;")
            self._out.pragma(("parallel for " if self._style.threads else "") + self._simd())
            self._out.open(_FLAT)
            self._element(source, texts, target)
            self._out.close()
            return
        self._row_loop()
        self._out.pragma(self._simd())
        self._out.open(_COLS)
        self._out.add(_INDEX)
        self._element(source, texts, target)
        self._out.close()
        self._out.close()

    def _column_loop(self, source: str, texts: list[str], target: str) -> None:
        self._out.open(_COLS)
        self._out.open(_ROWS)
        self._out.add(_INDEX)
        self._element(source, texts, target)
        self._out.close()
        self._out.close()

    def _blocked(self) -> None:
        texts = self._texts(self._program.before, index="b + i")
        self._out.add("const long n = rows * cols;", "float t[1024];")
        self._out.open("for (long b = 0; b < n; b += 1024)")
        self._out.add("const long k = n - b < 1024 ? n - b : 1024;")
        for number, text in enumerate(texts):
            source = "x[b + i]" if number == 0 else "t[i]"
            target = "out[b + i]" if number + 1 == len(texts) else "t[i]"
            self._out.pragma(self._simd())
            self._out.open("for (long i = 0; i < k; ++i)")
            self._element(source, [text], target)
            self._out.close()
        self._out.close()

    # Rows ------------------------------------------------------------------------------------------------------

    def _by_row(self) -> None:
        """Reductions and normalisations over the columns of each row."""
        operator = self._program.row_operator
        assert operator is not None
        source, before = "x[i]", self._texts(self._program.before)
        if self._style.structure is Structure.COLUMNS:
            self._rows_by_column(before)
            return
        if self._style.structure is not Structure.FUSED and before:
            last = "out" if not operator.is_reduction else "t"
            if last == "t" and self._style.structure is Structure.PASSES:
                self._out.add("std::vector<float> t(rows * cols);")
            source, before = self._stages(False, before, last) + "[i]", []
        elif operator.is_reduction and before and len(operator.passes) > 1 and not self._style.threads:
            self._out.add("std::vector<float> t(cols);")
        self._row_loop()
        self._passes(source, before)
        self._out.close()

    def _passes(self, source: str, before: list[str]) -> None:
        operator = self._program.row_operator
        assert operator is not None
        keep = "t[c]" if operator.is_reduction else "out[i]"
        if operator.is_reduction and self._style.threads:
            keep = ""
        after = self._texts(self._program.after)
        for number, visit in enumerate(operator.passes):
            final = number + 1 == len(operator.passes) and not operator.is_reduction
            texts = [*before, *visit.statements, *(after if final else [])]
            stores = final or bool(texts) and number + 1 < len(operator.passes) and bool(keep)
            self._visit(visit, source, texts, ("out[i]" if final else keep) if stores else "")
            self._out.add(*visit.after)
            if stores:
                source, before = keep, []
        if operator.is_reduction:
            self._out.add(f"float v = {operator.result};", *after, "out[r] = v;")

    def _visit(self, visit: Pass, source: str, texts: list[str], target: str) -> None:
        accumulator = visit.accumulator
        if accumulator is not None:
            self._out.add(f"float {accumulator.name} = {accumulator.initial};")
        self._out.pragma(self._simd(*([accumulator] if accumulator else [])))
        self._out.open(_COLS)
        if "[i]" in " ".join([source, target, *texts]):
            self._out.add(_INDEX)
        self._out.add(f"float v = {source};", *texts)
        if target:
            self._out.add(f"{target} = v;")
        if accumulator is not None:
            self._out.add(accumulator.update)
        self._out.close()

    def _rows_by_column(self, before: list[str]) -> None:
        """All rows at once, column by column, with one accumulator a row: strided."""
        operator = self._program.row_operator
        assert operator is not None
        source, names = "x[i]", []
        after = self._texts(self._program.after)
        for number, visit in enumerate(operator.passes):
            final = number + 1 == len(operator.passes) and not operator.is_reduction
            if visit.accumulator is not None:
                names.append(visit.accumulator.name)
                self._out.add(f"std::vector<float> {names[-1]}(rows, {visit.accumulator.initial});")
            statements = [_indexed(text, names, "r") for text in visit.statements]
            texts = [*before, *statements, *(after if final else [])]
            stores = final or bool(texts) and not operator.is_reduction
            self._out.open(_COLS)
            self._out.open(_ROWS)
            self._out.add(_INDEX, f"float v = {source};", *texts)
            if stores:
                self._out.add("out[i] = v;")
                source, before = "out[i]", []
            if visit.accumulator is not None:
                self._out.add(_indexed(visit.accumulator.update, names, "r"))
            self._out.close()
            self._out.close()
            self._finish_rows(visit, names)
        if operator.is_reduction:
            self._out.open(_ROWS)
            self._out.add(f"float v = {_indexed(operator.result, names, 'r')};", *after, "out[r] = v;")
            self._out.close()

    def _finish_rows(self, visit: Pass, names: list[str]) -> None:
        """What a pass computes once a row; its constants become arrays, named in `names` from then on."""
        if not visit.after:
            return
        lines = [re.sub(r"^const float ", "", line) for line in visit.after]
        new = [line.split(" ")[0] for line in lines if line.split(" ")[0] not in names]
        self._out.add(*(f"std::vector<float> {name}(rows);" for name in new))
        names += new
        self._out.open(_ROWS)
        self._out.add(*(_indexed(line, names, "r") for line in lines))
        self._out.close()

    # Columns ---------------------------------------------------------------------------------------------------

    def _over_rows(self) -> None:
        """Reductions over the rows of each column: by strided column, or with one accumulator a column."""
        before = self._texts(self._program.before)
        source = "x[i]"
        if self._style.structure is Structure.TEMPORARIES and before:
            source, before = self._stages(False, before, "t") + "[i]", []
        if self._style.structure is Structure.FUSED:
            self._accumulate_rows(before)
        else:
            self._strided_columns(source, before)

    def _strided_columns(self, source: str, before: list[str]) -> None:
        operator = self._program.row_operator
        assert operator is not None
        self._out.open(_COLS)
        for visit in operator.passes:
            accumulator = visit.accumulator
            assert accumulator is not None
            self._out.add(f"float {accumulator.name} = {accumulator.initial};")
            self._out.open(_ROWS)
            self._out.add(_INDEX, f"float v = {source};", *before, accumulator.update)
            self._out.close()
            self._out.add(*(_over_rows_text(line) for line in visit.after))
        after = self._texts(self._program.after)
        self._out.add(f"float v = {_over_rows_text(operator.result)};", *after, "out[c] = v;")
        self._out.close()

    def _accumulate_rows(self, before: list[str]) -> None:
        operator = self._program.row_operator
        assert operator is not None
        names = [visit.accumulator.name for visit in operator.passes if visit.accumulator]
        for visit in operator.passes:
            accumulator = visit.accumulator
            assert accumulator is not None
            self._out.add(f"std::vector<float> {accumulator.name}(cols, {accumulator.initial});")
            self._out.open(_ROWS)
            self._out.pragma(self._simd())
            self._out.open(_COLS)
            self._out.add(_INDEX, "float v = x[i];", *before, _by_column(accumulator.update, names))
            self._out.close()
            self._out.close()
            if visit.after:
                self._out.open(_COLS)
                self._out.add("s[c] = s[c] / rows;")
                self._out.close()
                names = ["s", *names]
        self._finish_columns(names)

    def _finish_columns(self, names: list[str]) -> None:
        operator = self._program.row_operator
        assert operator is not None
        self._out.open(_COLS)
        result = _by_column(_over_rows_text(operator.result), names)
        self._out.add(f"float v = {result};", *self._texts(self._program.after), "out[c] = v;")
        self._out.close()

    # Totals and products -----------------------------------------------------------------------------------------

    def _total(self) -> None:
        """Sums over all elements in double: a million float32 additions in a row lose four digits."""
        texts, source = self._texts(self._program.before), "x[i]"
        if self._style.structure is Structure.TEMPORARIES:
            source, texts = self._stages(True, texts, "t") + "[i]", []
        elif self._style.structure is Structure.FUSED:
            self._out.add("const long n = rows * cols;")
        self._out.add("double s = 0;")
        if self._style.structure is Structure.COLUMNS:
            self._out.open(_COLS)
            self._out.open(_ROWS)
            self._out.add(_INDEX)
        else:
            threads = "parallel for " if self._style.threads else ""
            self._out.pragma(threads + self._simd(Accumulator("s", "0", "", "+")))
            self._out.open(_FLAT)
        self._out.add(f"float v = {source};", *texts, "s = s + v;")
        self._out.close()
        if self._style.structure is Structure.COLUMNS:
            self._out.close()
        count = "(rows * cols)" if self._style.structure is Structure.COLUMNS else "n"
        self._out.add(f"out[0] = s / {count};" if self._program.total == "mean" else "out[0] = s;")

    def _linear(self) -> None:
        self._out.add("const long width = outputs[0]->shape[1];")
        after = self._texts(self._program.after, "r * width + j", "j", "r")
        self._row_loop()
        self._out.open("for (long j = 0; j < width; ++j)")
        self._out.add("float s = 0;")
        self._out.pragma(self._simd(Accumulator("s", "0", "", "+")))
        self._out.open(_COLS)
        self._out.add("s = s + x[r * cols + c] * weight[j * cols + c];")
        self._out.close()
        if self._style.structure is Structure.FUSED:
            self._out.add("float v = s + offset[j];", *after, "out[r * width + j] = v;")
            self._out.close()
            self._out.close()
            return
        self._out.add("out[r * width + j] = s + offset[j];")
        self._out.close()
        self._out.close()
        for text in after:
            self._out.open(_ROWS)
            self._out.open("for (long j = 0; j < width; ++j)")
            self._element("out[r * width + j]", [text], "out[r * width + j]")
            self._out.close()
            self._out.close()


def _over_rows_text(text: str) -> str:
    """A row formula read for columns: what is averaged over are the rows."""
    return text.replace("cols", "rows")


def _by_column(text: str, names: list[str]) -> str:
    """Accumulators become arrays indexed by the column; a mean `m` of a variance is kept in `s`."""
    if "s" in names and "q" in names:
        text = re.sub(r"\bm\b", "s", text)
    return _indexed(text, sorted(set(names)), "c")


def _indexed(text: str, names: list[str], index: str) -> str:
    """The scalars `names` read as elements of arrays; without names, the text itself."""
    return re.sub(rf"\b({'|'.join(names)})\b", rf"\1[{index}]", text) if names else text


def write_cpp(program: Program, style: Style) -> str:
    """The candidate's source. The style's structure must be one of `styles_for(program)`."""
    return _CppProgram(program, style).write()


def as_answer(source: str) -> str:
    """An answer is one fenced block."""
    return f"```cpp\n{source}```"
