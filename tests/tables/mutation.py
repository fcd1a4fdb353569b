"""Small changes of a module, such as a careless hand could make: comparisons, sums, constants, statements left out.

It runs nothing and knows no test. Left alone are words for people, types, decorators, and asserts.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

OPERATORS: dict[type[ast.AST], tuple[type[Any], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,), ast.NotIn: (ast.In,), ast.And: (ast.Or,), ast.Or: (ast.And,),
    ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.FloorDiv,), ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,), ast.Mod: (ast.FloorDiv,), ast.LShift: (ast.RShift,),
    ast.BitAnd: (ast.BitOr,), ast.BitOr: (ast.BitAnd,),
}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "popleft": "pop", "appendleft": "append",
         "minimum": "maximum", "maximum": "minimum", "bisect_right": "bisect_left", "bisect_left": "bisect_right"}
FOR_PEOPLE = ("__all__", "__slots__", "version", "evidence", "left_out")
"""Names whose values nothing computes with."""
FOR_TYPES = ("Literal", "Callable", "tuple", "dict")
WORD = re.compile(r"[A-Za-z_0-9-]+")
"""A string that is not for people."""
SHOWN = 70
"""Characters of code up to which a change is told with what stands around it."""

Steps = tuple[Any, ...]
"""From a tree to one of its nodes: a node, then its field, the place in the list there or None, and the next node."""


@dataclass(eq=False)
class Mutant:
    """One change.

    Attributes:
        module: The file, from the project's root.
        where: Qualified name of the function or class that it stands in; "" outside of both.
        change: The code before and after, shortened.
        lines: Lines of the statement that it stands in.
        early: It acts when the module is imported: outside of all functions.
    """

    module: str
    where: str
    change: str
    lines: range
    early: bool
    _tree: ast.Module
    _edit: tuple[Any, str, int | None, ast.AST]

    @property
    def name(self) -> str:
        """What tells it from all others of its module, whatever lines are added above."""
        return f"{self.where}: {self.change}" if self.where else self.change

    @property
    def key(self) -> tuple[str, str]:
        """Module and name, without the brackets that Pythons set differently."""
        return key(self.module, self.name)

    def compiled(self, root: Path, closed_over: Collection[tuple[str, int]] = ()) -> CodeType:
        """The module's code with the change, which stays in the tree: whoever compiles another one forks.

        Methods named in `closed_over`, with their first lines, keep hold of their class even where they no longer ask.
        """
        _put(*self._edit)
        for node in ast.walk(self._tree):
            if isinstance(node, ast.FunctionDef) and (node.name, _first_line(node)) in closed_over:
                node.body += ast.parse("if False: __class__").body
        return compile(ast.fix_missing_locations(self._tree), str(root / self.module), "exec")


def key(module: str, name: str) -> tuple[str, str]:
    """What a change of that name is looked up by."""
    return module, re.sub(r"[()]", "", name)


def mutants(root: Path, module: str) -> list[Mutant]:
    """All changes of a module, in the order of its lines. `module` is its file, from the root."""
    tree, seen = ast.parse((root / module).read_text("utf-8")), Counter[str]()
    found = []
    for steps, new in _changes((tree,)):
        mutant = _mutant(module, tree, steps, new)
        seen[mutant.name] += 1
        if (number := seen[mutant.name]) > 1:
            mutant.change += f" ({number})"
        found.append(mutant)
    return found


def _changes(steps: Steps) -> Iterator[tuple[Steps, ast.AST]]:
    """Every node below the last one that may be exchanged, and for what."""
    parent = steps[-1]
    for field, value in ast.iter_fields(parent):
        for at, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(child, ast.AST) or _left_alone(field, child):
                continue
            here = (*steps, field, at, child)
            yield from ((here, new) for new in _instead(parent, field, child))
            if not isinstance(child, ast.Raise):
                yield from _changes(here)


def _left_alone(field: str, node: ast.AST) -> bool:
    match node:
        case ast.Assert() | ast.JoinedStr() | ast.Import() | ast.ImportFrom():
            return True
        case ast.If(ast.Name("TYPE_CHECKING")) | ast.Call(ast.Name("Metric")):
            return True
        case ast.keyword("init" | "repr" | "compare"):
            return True
        case ast.Subscript(ast.Name(name)) if name in FOR_TYPES:
            return True
        case ast.Assign([ast.Name(name)]) | ast.AnnAssign(ast.Name(name)) if name in FOR_PEOPLE:
            return True
    return field in ("annotation", "returns", "decorator_list")


def _instead(parent: ast.AST, field: str, node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in the place of a node."""
    match node:
        case ast.Compare(left, operators, right):
            for at, operator in enumerate(operators):
                for other in OPERATORS[type(operator)]:
                    yield ast.Compare(left, [*operators[:at], other(), *operators[at + 1:]], right)
        case ast.BinOp(left, operator, right) if type(operator) in OPERATORS and not _names_a_type(right):
            yield ast.BinOp(left, OPERATORS[type(operator)][0](), right)
        case ast.BoolOp(operator, values):
            yield ast.BoolOp(OPERATORS[type(operator)][0](), values)
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            yield operand
        case ast.Constant(value) if not isinstance(parent, ast.Expr):
            yield from map(ast.Constant, _other_values(value))
        case ast.Call(ast.Name(name), arguments, keywords) if name in NAMES:
            yield ast.Call(ast.Name(NAMES[name], ast.Load()), arguments, keywords)
        case ast.Call(ast.Attribute(of, name), arguments, keywords) if name in NAMES:
            yield ast.Call(ast.Attribute(of, NAMES[name], ast.Load()), arguments, keywords)
        case ast.Return(value) if value is not None and ast.unparse(value) != "None":
            yield ast.Return(ast.Constant(None))
        case ast.Break():
            yield ast.Continue()
        case ast.Continue():
            yield ast.Break()
        case ast.Expr(ast.Call() | ast.Yield() | ast.YieldFrom()) | ast.AugAssign() | ast.Delete() | ast.Raise():
            yield ast.Pass()
        case ast.Assign(targets) if not all(isinstance(target, ast.Name | ast.Tuple) for target in targets):
            yield ast.Pass()
    if field in ("test", "ifs") and not _has_an_opposite(node):
        yield ast.UnaryOp(ast.Not(), node)    # type: ignore[arg-type]


def _names_a_type(node: ast.AST) -> bool:
    """`int | float` in a call of isinstance is no sum."""
    return isinstance(node, ast.Name) and isinstance(getattr(builtins, node.id, None), type)


def _has_an_opposite(node: ast.AST) -> bool:
    """Whether a condition is turned round by another change."""
    return (isinstance(node, ast.Compare) and len(node.ops) == 1) or (
        isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))


def _other_values(value: Any) -> Iterator[Any]:
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield value + 1
    elif isinstance(value, float):
        yield value * 2 or 1.0
    elif isinstance(value, str) and WORD.fullmatch(value):
        yield f"not {value}"


def _put(parent: Any, field: str, at: int | None, node: ast.AST) -> None:
    if at is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[at] = node


def _first_line(node: ast.FunctionDef) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _mutant(module: str, tree: ast.Module, steps: Steps, new: ast.AST) -> Mutant:
    nodes, (parent, field, at, old) = steps[::3], steps[-4:]
    before = _told(nodes, None)
    _put(parent, field, at, new)
    after = _told((*nodes[:-1], new), len(before))
    _put(parent, field, at, old)
    scopes = [node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    early = not any(isinstance(node, ast.FunctionDef | ast.Lambda) and field == "body"
                    for node, field in zip(nodes, steps[1::3], strict=False))    # a default is outside of its function
    statement = next(node for node in reversed(nodes) if isinstance(node, ast.stmt))
    return Mutant(module, ".".join(scopes), f"{before[-1]} -> {after[-1]}", _lines(statement), early, tree,
                  (parent, field, at, new))


def _told(nodes: Steps, count: int | None) -> list[str]:
    """The code of the last node, then of what stands around it: so many of them, or as long as that is short."""
    texts: list[str] = []
    for node in reversed(nodes):
        if not isinstance(node, ast.expr | ast.stmt | ast.keyword):
            continue
        text = " ".join(ast.unparse(node).split())
        compound = isinstance(node, ast.stmt) and hasattr(node, "body")
        if len(texts) == count or (texts and count is None and (len(text) > SHOWN or compound)):
            break
        texts.append(text if len(text) <= SHOWN + 20 else text[:SHOWN] + "...")
    return texts


def _lines(statement: ast.stmt) -> range:
    """The lines of a statement without its body."""
    body = getattr(statement, "body", None)
    end = body[0].lineno - 1 if body else statement.end_lineno or 0
    return range(statement.lineno, max(statement.lineno, end) + 1)
