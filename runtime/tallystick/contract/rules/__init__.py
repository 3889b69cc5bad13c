"""The checker's rules, one module each: the table of the policy (contract.md, section 4)."""

from tallystick.contract.rules import (
    dynamic_access,
    entry_point,
    unbounded_loop,
    unguarded_fanout,
    unmediated_effect,
    unreadable_source,
)
from tallystick.contract.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    unreadable_source.RULE,
    entry_point.RULE,
    unmediated_effect.RULE,
    unbounded_loop.RULE,
    unguarded_fanout.RULE,
    dynamic_access.RULE,
)
"""Every rule, in the order of the codes."""
