"""The checker's rules, one module each: the table of the policy (contract.md, section 4)."""

from tallystick.contract.rules import (
    dynamic_access,
    entry_point,
    hidden_input,
    outside_envelope,
    recursion,
    shared_branch_state,
    swallowed_stop,
    unbounded_loop,
    unencodable_payload,
    unguarded_fanout,
    unmediated_effect,
    unordered_iteration,
    unreadable_source,
)
from tallystick.contract.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    unreadable_source.RULE,
    entry_point.RULE,
    unmediated_effect.RULE,
    unbounded_loop.RULE,
    hidden_input.RULE,
    unguarded_fanout.RULE,
    recursion.RULE,
    swallowed_stop.RULE,
    unencodable_payload.RULE,
    shared_branch_state.RULE,
    dynamic_access.RULE,
    outside_envelope.RULE,
    unordered_iteration.RULE,
)
"""Every rule, in the order of the codes."""
