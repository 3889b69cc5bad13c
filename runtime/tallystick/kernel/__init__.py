"""Actors, typed refs, bounded mailboxes, supervisors and clocks: generic, importing nothing else of tallystick.

An actor handles one message at a time; callers hold its ``Ref`` and ``tell``, ``send`` or ``ask``. A supervisor runs
its children from specifications that are data. ``open_tree`` runs the whole.
"""

from tallystick.kernel.actor import Actor
from tallystick.kernel.budget import RestartBudget
from tallystick.kernel.child import ChildReport, ChildSpec
from tallystick.kernel.clock import Clock, ManualClock, SystemClock, Timer, cancel_after
from tallystick.kernel.errors import (
    ActorDiedError,
    ActorGoneError,
    ActorStoppedError,
    ChildSpecError,
    DeadlineError,
    KernelError,
    MailboxFullError,
    RestartBudgetError,
    ShutdownTimeError,
    StartError,
    StrayCancellationError,
)
from tallystick.kernel.message import Deferred, Request
from tallystick.kernel.ref import Ref
from tallystick.kernel.supervisor import StartChild, StopChild, SupervisorSpec
from tallystick.kernel.tree import Node, Tree, log_report, open_tree

__all__ = [
    "Actor",
    "ActorDiedError",
    "ActorGoneError",
    "ActorStoppedError",
    "ChildReport",
    "ChildSpec",
    "ChildSpecError",
    "Clock",
    "DeadlineError",
    "Deferred",
    "KernelError",
    "MailboxFullError",
    "ManualClock",
    "Node",
    "Ref",
    "Request",
    "RestartBudget",
    "RestartBudgetError",
    "ShutdownTimeError",
    "StartChild",
    "StartError",
    "StopChild",
    "StrayCancellationError",
    "SupervisorSpec",
    "SystemClock",
    "Timer",
    "Tree",
    "cancel_after",
    "log_report",
    "open_tree",
]
