"""The syntax of the subset: every kind of node that was decided about (contract.md, section 4, R00).

What is in none of these tables is refused, so syntax that a later Python adds is refused until somebody has decided.
"""

import ast

EXPRESSIONS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Attribute: (),
    ast.Await: (),
    ast.BinOp: ("left", "right"),
    ast.BoolOp: ("values",),
    ast.Call: (),
    ast.Compare: ("left", "comparators"),
    ast.Constant: (),
    ast.Dict: ("keys", "values"),
    ast.DictComp: (),
    ast.FormattedValue: ("value", "format_spec"),
    ast.GeneratorExp: (),
    ast.IfExp: ("test", "body", "orelse"),
    ast.JoinedStr: ("values",),
    ast.Lambda: (),
    ast.List: ("elts",),
    ast.ListComp: (),
    ast.MatchAs: (),
    ast.MatchClass: ("cls", "patterns", "kwd_patterns"),
    ast.MatchMapping: (),
    ast.MatchOr: ("patterns",),
    ast.MatchSequence: ("patterns",),
    ast.MatchSingleton: (),
    ast.MatchStar: (),
    ast.MatchValue: ("value",),
    ast.Name: (),
    ast.NamedExpr: (),
    ast.Set: ("elts",),
    ast.SetComp: (),
    ast.Slice: ("lower", "upper", "step"),
    ast.Starred: ("value",),
    ast.Subscript: ("value", "slice"),
    ast.Tuple: ("elts",),
    ast.UnaryOp: ("operand",),
    ast.Yield: (),
    ast.YieldFrom: (),
    ast.keyword: ("value",),
}
"""Expressions and patterns, with the fields that hold more of them; none where ``survey_walk`` has a handler."""

PLAIN_STATEMENTS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Assert: ("test", "msg"),
    ast.Continue: (),
    ast.Expr: ("value",),
    ast.Pass: (),
}
"""Statements that hold nothing but expressions, in these fields. The other statements are in ``survey_walk``."""

PARTS: frozenset[type[ast.AST]] = frozenset(
    {
        *(ast.Module, ast.ExceptHandler, ast.alias, ast.arg, ast.arguments, ast.comprehension, ast.match_case),
        *(ast.withitem, ast.Load, ast.Store, ast.Del, ast.And, ast.Or),
        *(ast.Add, ast.Sub, ast.Mult, ast.MatMult, ast.Div, ast.Mod, ast.Pow, ast.LShift, ast.RShift),
        *(ast.BitOr, ast.BitXor, ast.BitAnd, ast.FloorDiv, ast.Invert, ast.Not, ast.UAdd, ast.USub),
        *(ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Is, ast.IsNot, ast.In, ast.NotIn),
    }
)
"""Nodes that only stand inside those, and are read off them."""

REFUSED: dict[str, tuple[str, str]] = {
    "ClassDef": ("a class", "write functions, and keep data in dicts and lists"),
    "Interpolation": ("a template string", "write an f-string"),
    "ParamSpec": ("a type parameter", "leave the type parameter out"),
    "TemplateStr": ("a template string", "write an f-string"),
    "TryStar": ("except*", "write try: ... except CapabilityError as e: ..."),
    "TypeAlias": ("a type statement", "leave the type out"),
    "TypeVar": ("a type parameter", "leave the type parameter out"),
    "TypeVarTuple": ("a type parameter", "leave the type parameter out"),
}
"""What was looked at and left out, by the name of the node, which not every Python has: what it is, what to write."""
