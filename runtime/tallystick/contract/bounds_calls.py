"""Bounds of what calls return: builtins, methods, fanouts, the script's own functions (contract.md, section 4, R03)."""

import ast
from typing import TYPE_CHECKING

from tallystick.contract.bounds_effect import INF, NEVER, UNBOUNDED, Effect, Measure, Number, constant, plus
from tallystick.contract.scopes import Part, Place, Scope, Steps

if TYPE_CHECKING:
    from tallystick.contract.bounds import Bounds
    from tallystick.contract.bounds_callers import Reference
    from tallystick.contract.bounds_flow import Query

_SAME_ITEMS = frozenset({"list", "tuple", "set", "frozenset", "sorted", "reversed", "iter", "aiter", "dict"})
_SAME_ITEMS_METHODS = frozenset({"copy", "keys"})
_NOT_LONGER_METHODS = frozenset(
    {"strip", "lstrip", "rstrip", "intersection", "difference", "removeprefix", "removesuffix"}
)
_SET_ALGEBRA = frozenset({"union", "intersection", "difference", "symmetric_difference", "copy"})
_SPLITTERS = frozenset({"split", "rsplit"})


class Calls:
    """Evaluates calls to bounds."""

    def __init__(self, bounds: "Bounds") -> None:
        self._bounds = bounds

    def evaluate(self, node: ast.Call, place: Place, measure: Measure, path: Steps, about: "Query | None") -> Effect:
        """Return the bound of what a call returns; see ``Values.evaluate``."""
        func = node.func
        if isinstance(func, ast.Name):
            if place.scope.resolve(func.id) is None:
                return self._builtin(func.id, node, place, measure, path, about)
            functions = self._bounds.callers.functions_of(func.id, place.scope)
            if functions is not None:
                return constant(self._results(functions, measure, path))
        elif isinstance(func, ast.Attribute):
            if isinstance(func.value, ast.Name) and func.value.id == "ctx":
                return constant(self._of_context(func.attr, node, place, measure, path))
            return self._method(func, node, place, measure, path, about)
        return UNBOUNDED

    def _results(self, functions: list[Scope], measure: Measure, path: Steps) -> Number:
        return max((self._bounds.callers.result(function, measure, path) for function in functions), default=INF)

    # Builtins

    def _builtin(
        self, name: str, node: ast.Call, place: Place, measure: Measure, path: Steps, about: "Query | None"
    ) -> Effect:
        arguments = node.args
        first = arguments[0] if arguments and not isinstance(arguments[0], ast.Starred) else None
        if measure is Measure.UNORDERED and not path:
            return constant(1) if name in {"set", "frozenset"} else UNBOUNDED
        match name:
            case "range":
                return constant(self._range(node, place, measure, path))
            case "len" if not path and first is not None and measure in {Measure.UPPER, Measure.LOWER}:
                asked = Measure.LENGTH if measure is Measure.UPPER else Measure.SHORTNESS
                return constant(self._bounds.number(first, place, asked))
            case "min" | "max":
                return self._extreme(name, node, place, measure, path, about)
            case "int" | "round" | "abs" if not path and first is not None:
                return self._rounded(name, first, place, measure, about)
            case "dict":
                return self._dict(node, place, measure, path, about)
            case "zip" | "map":
                items = arguments[1:] if name == "map" else arguments
                if not path and measure is Measure.LENGTH:
                    return self._shortest(items, place, about)
                return constant(self._side_by_side(name, items, node, place, measure, path))
            case "enumerate" if first is not None:
                return self._enumerate(first, node, place, measure, path, about)
            case "filter" if len(arguments) == 2:  # noqa: PLR2004 - the function and the items
                return self._bounds.values.evaluate(arguments[1], place, measure, path, about)
            case "next" | "anext" if first is not None:
                return self._bounds.values.evaluate(first, place, measure, (Part.EACH, *path))
            case "divmod" if not path and measure is Measure.LENGTH:
                return constant(2)
            case _ if name in _SAME_ITEMS:
                if first is None:
                    return constant(0 if measure is Measure.LENGTH and not path and not arguments else INF)
                if measure is Measure.SHORTNESS and name in {"set", "frozenset"}:
                    return constant(0)
                inner = (Part.EACH, *path[1:]) if path else path
                return self._bounds.values.evaluate(first, place, measure, inner, about)
        return UNBOUNDED

    def _range(self, node: ast.Call, place: Place, measure: Measure, path: Steps) -> Number:
        number, arguments = self._bounds.number, node.args
        if any(isinstance(argument, ast.Starred) for argument in arguments) or not arguments:
            return INF
        start = arguments[0] if len(arguments) > 1 else None
        stop = arguments[min(len(arguments), 2) - 1]
        step = arguments[2] if len(arguments) == 3 else None  # noqa: PLR2004 - start, stop, step
        exact = 1 if step is None else self._bounds.exactly(step, place)
        low, high = (stop, start) if exact is not None and exact < 0 else (start, stop)
        least = 0 if low is None else number(low, place, Measure.LOWER)  # negated
        most = 0 if high is None else number(high, place, Measure.UPPER)
        if path:
            upward = exact is not None and exact > 0
            if len(path) > 1 or exact is None:
                return INF
            if measure is Measure.UPPER:
                return plus(most, -1) if upward else most
            return least if upward else plus(least, -1)
        if measure is not Measure.LENGTH:
            return 0 if measure is Measure.SHORTNESS else INF
        if step is None or exact is None:
            shorter = step is None or number(step, place, Measure.LOWER) < 0
            return max(plus(most, least), 0) if shorter else INF
        distance = plus(most, least)
        return max(-(-distance // abs(exact)), 0) if exact and distance not in {INF, NEVER} else max(distance, 0)

    def _extreme(
        self, name: str, node: ast.Call, place: Place, measure: Measure, path: Steps, about: "Query | None"
    ) -> Effect:
        values, plain = self._bounds.values, not node.keywords
        if any(isinstance(argument, ast.Starred) for argument in node.args) or not node.args:
            return UNBOUNDED
        if len(node.args) == 1 and measure is not Measure.UNORDERED:
            effect = values.evaluate(node.args[0], place, measure, (Part.EACH, *path))
            for keyword in node.keywords:
                if keyword.arg == "default":
                    effect = effect.join(values.evaluate(keyword.value, place, measure, path))
            return effect
        effects = [values.evaluate(argument, place, measure, path, about) for argument in node.args]
        smallest = plain and not path and measure is (Measure.UPPER if name == "min" else Measure.LOWER)
        result = effects[0]
        for effect in effects[1:]:
            result = result.least(effect) if smallest else result.join(effect)
        return result

    def _rounded(self, name: str, value: ast.expr, place: Place, measure: Measure, about: "Query | None") -> Effect:
        evaluate = self._bounds.values.evaluate
        if name != "abs":
            return evaluate(value, place, measure, (), about)
        if measure is Measure.LOWER:
            return constant(0)
        return evaluate(value, place, Measure.UPPER).join(evaluate(value, place, Measure.LOWER))

    def _dict(self, node: ast.Call, place: Place, measure: Measure, path: Steps, about: "Query | None") -> Effect:
        values = self._bounds.values
        result = constant(0 if not path and measure is Measure.LENGTH else NEVER)
        if measure is Measure.SHORTNESS:
            return constant(0)
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                return UNBOUNDED
            # dict(pairs) holds what is second in each pair; dict(other) holds what other does
            inner = path if not path or path[0] is Part.EACH else (Part.EACH, 1, *path[1:])
            result = self._with(result, values.evaluate(argument, place, measure, inner, about), measure, path)
            if inner != path:
                result = self._with(result, values.evaluate(argument, place, measure, path, about), measure, path)
        for keyword in node.keywords:
            if keyword.arg is None:
                effect = values.evaluate(keyword.value, place, measure, path)
            elif path:
                effect = values.evaluate(keyword.value, place, measure, path[1:])
            else:
                effect = constant(1)
            result = self._with(result, effect, measure, path)
        return result

    def _with(self, left: Effect, right: Effect, measure: Measure, path: Steps) -> Effect:
        return left.join(right) if path or measure is not Measure.LENGTH else left.plus(right)

    def _shortest(self, items: list[ast.expr], place: Place, about: "Query | None") -> Effect:
        """Return the length of a ``zip`` or ``map``, which is as short as the shortest of its arguments."""
        shortest = UNBOUNDED if items else constant(0)
        for item in items:
            if not isinstance(item, ast.Starred):
                shortest = self._bounds.values.evaluate(item, place, Measure.LENGTH, (), about).least(shortest)
        return shortest

    def _side_by_side(
        self, name: str, items: list[ast.expr], node: ast.Call, place: Place, measure: Measure, path: Steps
    ) -> Number:
        """Return the bound of what lies inside a ``zip`` or ``map``."""
        number = self._bounds.number
        if not path or path[0] is not Part.EACH:
            return 0 if measure is Measure.SHORTNESS and not path else INF
        if name == "map":
            return self._applied(node.args[0], node, place, measure, path[1:])
        if len(path) > 1 and isinstance(path[1], int) and 0 <= path[1] < len(items):
            chosen = items[path[1]]
            if not any(isinstance(item, ast.Starred) for item in items[: path[1] + 1]):
                return number(chosen, place, measure, (Part.EACH, *path[2:]))
        if len(path) == 1:
            return len(items) if measure is Measure.LENGTH and not any(map(_is_starred, items)) else INF
        return INF

    def _enumerate(
        self, first: ast.expr, node: ast.Call, place: Place, measure: Measure, path: Steps, about: "Query | None"
    ) -> Effect:
        values = self._bounds.values
        if not path:
            return values.evaluate(first, place, measure, path, about)
        match path:
            case (Part.EACH, 1, *rest):
                return values.evaluate(first, place, measure, (Part.EACH, *rest))
            case (Part.EACH, 0):
                start = node.args[1] if len(node.args) > 1 else None
                start = next((keyword.value for keyword in node.keywords if keyword.arg == "start"), start)
                begins = constant(0) if start is None else values.evaluate(start, place, measure)
                if measure is Measure.LOWER:
                    return begins
                return begins.plus(values.evaluate(first, place, Measure.LENGTH)).plus(constant(-1))
        return UNBOUNDED

    # Methods

    def _method(
        self, func: ast.Attribute, node: ast.Call, place: Place, measure: Measure, path: Steps, about: "Query | None"
    ) -> Effect:
        values, receiver = self._bounds.values, func.value
        method = func.attr
        if method in {"get", "pop", "setdefault"} and node.args:
            key = node.args[0]
            step = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else Part.ANY
            found = values.evaluate(receiver, place, measure, (step, *path))
            for default in node.args[1:]:
                found = found.join(values.evaluate(default, place, measure, path))
            return found
        if method in {"items", "values"} and (path or measure is not Measure.UNORDERED):
            if not path:
                return values.evaluate(receiver, place, measure, (), about)
            return constant(self._of_view(method, receiver, place, measure, path))
        if method == "fromkeys" and node.args and not path:
            return values.evaluate(node.args[0], place, measure)
        if measure is Measure.UNORDERED and not path and method not in {"get", "pop", "setdefault"}:
            return values.evaluate(receiver, place, measure) if method in _SET_ALGEBRA else UNBOUNDED
        if method == "union":
            effect = values.evaluate(receiver, place, measure, path, about)
            for other in node.args:
                effect = self._with(effect, values.evaluate(other, place, measure, path, about), measure, path)
            return effect
        if method in _SPLITTERS and len(node.args) == 2 and not path and measure is Measure.LENGTH:  # noqa: PLR2004 - separator and most splits
            return constant(self._split(node.args[1], place))
        if method in {"partition", "rpartition"} and not path and measure is Measure.LENGTH:
            return constant(3)
        if method in _SAME_ITEMS_METHODS:
            return values.evaluate(receiver, place, measure, path, about)
        if method in _NOT_LONGER_METHODS and measure is Measure.LENGTH and not path:
            return values.evaluate(receiver, place, measure, path, about)
        return UNBOUNDED

    def _split(self, most: ast.expr, place: Place) -> Number:
        """Return how many pieces a split gives; a negative number of splits means as many as there are."""
        if self._bounds.number(most, place, Measure.LOWER) > 0:
            return INF
        return plus(self._bounds.number(most, place, Measure.UPPER), 1)

    def _of_view(self, method: str, receiver: ast.expr, place: Place, measure: Measure, path: Steps) -> Number:
        number = self._bounds.number
        match method, path:
            case "values", (_, *rest):
                return number(receiver, place, measure, (Part.ANY, *rest))
            case "items", (_, 0, *rest):
                return number(receiver, place, measure, (Part.EACH, *rest))
            case "items", (_, 1, *rest):
                return number(receiver, place, measure, (Part.ANY, *rest))
            case "items", (_,) if measure is Measure.LENGTH:
                return 2
        return INF

    # Fanouts

    def _of_context(self, method: str, node: ast.Call, place: Place, measure: Measure, path: Steps) -> Number:
        handed = place.handed_to(node)
        branches = self._bounds.branches(node)
        if branches is None:
            return INF
        number = self._bounds.number
        match method:
            case "parallel" if path:
                return number(branches, handed, measure, (path[0], *path[1:]))
            case "race":
                return number(branches, handed, measure, (Part.EACH, *path))
            case "parallel" | "pipeline" | "dag" if not path:
                return number(branches, handed, measure)
            case "pipeline" if len(node.args) > 1:
                return self._applied(node.args[-1], node, handed, measure, path[1:])
            case "dag" if isinstance(branches, ast.Dict) and isinstance(path[0], str):
                return self._of_node(branches, path[0], node, handed, measure, path[1:])
        return INF

    def _of_node(
        self, graph: ast.Dict, name: str, node: ast.Call, place: Place, measure: Measure, path: Steps
    ) -> Number:
        for key, value in zip(graph.keys, graph.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == name and isinstance(value, ast.Tuple | ast.List):
                return self._applied(value.elts[-1], node, place, measure, path) if value.elts else INF
        return INF

    def _applied(self, function: ast.expr, node: ast.Call, place: Place, measure: Measure, path: Steps) -> Number:
        """Return the bound of what a function returns that something else calls."""
        if isinstance(function, ast.Lambda):
            return self._results([self._bounds.survey.scopes[function]], measure, path)
        if isinstance(function, ast.Name):
            functions = self._bounds.callers.functions_of(function.id, place.scope)
            if functions is not None:
                return self._results(functions, measure, path)
        return INF

    def handed_to_branch(self, fanout: ast.Call, reference: "Reference", measure: Measure, path: Steps) -> Number:
        """Return the bound of what a pipeline hands to a stage, or a dag to a node."""
        branches = self._bounds.branches(fanout)
        if branches is None:
            return INF
        if reference.kind == "stage":
            if reference.number == 0:
                return self._bounds.number(branches, reference.place, measure, (Part.EACH, *path))
            return self._applied(fanout.args[reference.number], fanout, reference.place, measure, path)
        assert isinstance(branches, ast.Dict)
        node = branches.values[reference.number]
        if isinstance(node, ast.Tuple | ast.List) and not path and measure is Measure.LENGTH:
            return self._bounds.number(node.elts[0], reference.place, Measure.LENGTH)
        if path and isinstance(path[0], str):
            return self._of_node(branches, path[0], fanout, reference.place, measure, path[1:])
        return INF


def _is_starred(node: ast.expr) -> bool:
    return isinstance(node, ast.Starred)
