"""Bounds of what fanouts give and hand to their branches (contract.md, sections 4 and 6.4)."""

import ast
from typing import TYPE_CHECKING

from tallystick.contract.bounds.callers import Reference
from tallystick.contract.bounds.effect import INF, LENGTH, Aspect, Number
from tallystick.contract.scopes import Part, Place

if TYPE_CHECKING:
    from tallystick.contract.bounds.analysis import Bounds

_BRANCHES = {"parallel": "branches", "race": "branches", "pipeline": "items", "dag": "graph"}


class Fanouts:
    """Evaluates fanouts to bounds."""

    def __init__(self, bounds: "Bounds") -> None:
        self._bounds = bounds

    def branches(self, fanout: ast.Call) -> ast.expr | None:
        """Return the argument that holds a fanout's branches, items or nodes; None if it is not written openly."""
        if fanout.args:
            return None if isinstance(fanout.args[0], ast.Starred) else fanout.args[0]
        assert isinstance(fanout.func, ast.Attribute)
        wanted = _BRANCHES.get(fanout.func.attr)
        return next((keyword.value for keyword in fanout.keywords if keyword.arg == wanted), None)

    def width(self, fanout: ast.Call, place: Place) -> Number:
        """Return how many branches a fanout at ``place`` can have."""
        branches = self.branches(fanout)
        return INF if branches is None else self._bounds.number(branches, place.handed_to(fanout), LENGTH)

    def evaluate(self, method: str, fanout: ast.Call, place: Place, aspect: Aspect) -> Number:
        """Return the bound of what awaiting a call of ``ctx`` gives."""
        branches, handed = self.branches(fanout), place.handed_to(fanout)
        if branches is None:
            return INF
        match method:
            case "parallel":
                return self._bounds.number(branches, handed, aspect)
            case "race":
                return self._bounds.number(branches, handed, aspect.under(Part.EACH))
            case "pipeline" | "dag" if not aspect.path:
                return self._bounds.number(branches, handed, aspect)
            case "pipeline" if len(fanout.args) > 1:
                return self.applied(fanout.args[-1], handed, aspect.inside())
            case "dag" if isinstance(branches, ast.Dict) and isinstance(aspect.path[0], str):
                return self._of_node(branches, aspect.path[0], handed, aspect.inside())
        return INF

    def _of_node(self, graph: ast.Dict, name: str, place: Place, aspect: Aspect) -> Number:
        for key, value in zip(graph.keys, graph.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == name and isinstance(value, ast.Tuple | ast.List):
                return self.applied(value.elts[-1], place, aspect) if value.elts else INF
        return INF

    def applied(self, function: ast.expr, place: Place, aspect: Aspect) -> Number:
        """Return the bound of what a function returns that something else calls."""
        if isinstance(function, ast.Lambda):
            return self._bounds.arguments.results([self._bounds.survey.scopes[function]], aspect)
        if isinstance(function, ast.Name):
            functions = self._bounds.callers.functions_of(function.id, place.scope)
            if functions is not None:
                return self._bounds.arguments.results(functions, aspect)
        return INF

    def handed_to_branch(self, fanout: ast.Call, reference: Reference, aspect: Aspect) -> Number:
        """Return the bound of what a pipeline hands to a stage, or a dag to a node."""
        branches, place = self.branches(fanout), reference.place
        if branches is None:
            return INF
        if reference.kind == "stage":
            if reference.number == 0:
                return self._bounds.number(branches, place, aspect.under(Part.EACH))
            return self.applied(fanout.args[reference.number], place, aspect)
        assert isinstance(branches, ast.Dict)
        node = branches.values[reference.number]
        if aspect == LENGTH and isinstance(node, ast.Tuple | ast.List):
            return self._bounds.number(node.elts[0], place, LENGTH)
        if aspect.path and isinstance(aspect.path[0], str):
            return self._of_node(branches, aspect.path[0], place, aspect.inside())
        return INF
