"""Every error of the kernel.

    KernelError
    ├── ChildSpecError           a child specification is wrong, or already in use
    ├── StartError               a child's factory or on_start failed; the cause is chained
    ├── MailboxFullError         a bounded mailbox had no room
    ├── DeadlineError            no reply within the asker's deadline
    ├── ActorGoneError           there is nobody to answer
    │   ├── ActorStoppedError      it was stopped, or never started: asking again does not help
    │   └── ActorDiedError         it crashed; the crash is chained
    ├── ShutdownTimeError        a child was cancelled because its shutdown time was over
    ├── StrayCancellationError   something inside an actor was cancelled, but not by its supervisor
    └── RestartBudgetError       children crashed too often: the supervisor gave up

``path`` is the ids from the root of the tree to the child, joined by ``/``.
"""


class KernelError(Exception):
    """The root of the kernel's errors."""


class ChildSpecError(KernelError):
    """A child specification is wrong, or already in use."""


class StartError(KernelError):
    """A child did not come up; what it had started is stopped again."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} did not start: {reason}")
        self.path = path


class MailboxFullError(KernelError):
    """The mailbox had no room; the message was not accepted."""

    def __init__(self, path: str, size: int) -> None:
        super().__init__(f"the mailbox of {path} is full ({size} messages); this message was not accepted")
        self.path = path
        self.size = size


class DeadlineError(KernelError):
    """No reply came in time; the message may still be handled, its reply is dropped."""

    def __init__(self, name: str, seconds: float) -> None:
        super().__init__(f"{name} did not answer within {seconds:g} s; it may still act on the message")
        self.name = name
        self.seconds = seconds


class ActorGoneError(KernelError):
    """There is nobody to answer."""


class ActorStoppedError(ActorGoneError):
    """The actor is stopped, or was never started."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is not running; a message that it had not handled was dropped")
        self.path = path


class ActorDiedError(ActorGoneError):
    """The actor crashed before it answered; the crash is the cause."""

    def __init__(self, path: str, cause: Exception) -> None:
        super().__init__(f"{path} died ({cause!r}); whether a message that it had in hand took effect is unknown")
        self.path = path
        self.__cause__ = cause


class ShutdownTimeError(KernelError):
    """A child did not stop within its shutdown time and was cancelled."""

    def __init__(self, path: str, seconds: float) -> None:
        super().__init__(f"{path} did not stop within {seconds:g} s and was cancelled")
        self.path = path
        self.seconds = seconds


class StrayCancellationError(KernelError):
    """Code inside an actor raised a cancellation that nobody had asked for; it counts as a crash."""

    def __init__(self, path: str) -> None:
        super().__init__(f"something inside {path} was cancelled, but not by its supervisor")
        self.path = path


class RestartBudgetError(KernelError):
    """More crashes than the restart budget allows; the supervisor stopped its children and failed."""

    def __init__(self, path: str, child: str, intensity: int, period: float) -> None:
        budget = f"{intensity} restarts in {period:g} s"
        super().__init__(f"{path} gave up on {child}: its budget of {budget} is spent; its children were stopped")
        self.path = path
        self.child = child
