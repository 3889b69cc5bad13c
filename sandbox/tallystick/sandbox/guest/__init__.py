"""The guest program: runs one script in confinement and relays its calls as frames.

It imports the standard library, msgspec and ``tallystick.sandbox.frames``, nothing else: the same files run in a
child process, in a container whose image holds just them, and in memory for tests.

``core`` is a pure state machine, frames in, frames out; ``process`` is the thin loop around it. There is no event
loop in a guest: a trampoline steps the script's coroutines in a fixed order, so that which frames it sends, and in
which order, follows from the script and from the order of the answers alone.
"""
