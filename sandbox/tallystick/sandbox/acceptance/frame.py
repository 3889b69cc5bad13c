"""What a script that has taken over its guest can send: frames that break the protocol.

Nothing keeps a script from this, for it shares its interpreter with the code that speaks for it; it even finds the
nonce. So each of these must end the launch, on the host's side, and no more than that.
"""

from tallystick.sandbox.acceptance.inside import PRELUDE

SPEAK = (
    PRELUDE
    + """
FRAMES, MSGSPEC = SYS.modules["tallystick.sandbox.frames"], SYS.modules["msgspec"]
Call, Done, Ready, Reply, pack = FRAMES.Call, FRAMES.Done, FRAMES.Ready, FRAMES.Reply, FRAMES.pack

def find_nonce():
    frame = SYS._getframe()
    while "boot" not in frame.f_locals:
        frame = frame.f_back
    return frame.f_locals["boot"].nonce

OUT = [n for n in range(3, 64) if attempt(OS.write, n, b"").startswith("DONE")][0]
nonce = find_nonce()

def raw(data):
    while data:
        data = data[OS.write(OUT, data):]

def frame(body):
    raw(FRAMES.HEAD.pack(len(body)) + body)

def fields(**values):
    frame(MSGSPEC.msgpack.encode({"nonce": nonce, **values}))

def say(*frames):
    raw(b"".join(map(pack, frames)))

def made(**changes):
    return Call(**{"nonce": nonce, "id": 1, "site": "s", "path": (), "occurrence": 0, "capability": "c",
                   "payload": None, **changes})

def call(**changes):
    say(made(**changes))

def nested(levels):
    body = pack(Done(nonce=nonce))[4:]
    frame(bytes([body[0] + 1]) + body[1:] + b"\\xa5value" + b"\\x91" * levels + b"\\xc0")
"""
)

#: Each ends the launch as a breach of the protocol.
BREACHES = {
    "not msgpack": "frame(b'\\xc1\\xc1')",
    "not a frame": "frame(MSGSPEC.msgpack.encode([1, 2]))",
    "an empty frame": "frame(b'')",
    "an oversized frame": "raw(b'\\xff\\xff\\xff\\xff')",
    "a frame cut off in its head": "raw(b'\\0'); OS._exit(0)",
    "a frame cut off in its body": "raw(pack(Done(nonce=nonce))[:-1]); OS._exit(0)",
    "deeply nested values": "nested(100_000)",
    "a frame full of empty values": "say(Done(nonce=nonce, value=[[]] * 60_000))",
    "an unknown kind": "fields(t='admin')",
    "an unknown field": "fields(t='done', paid=True)",
    "another nonce": "call(nonce='0' * 32)",
    "no nonce": "frame(MSGSPEC.msgpack.encode({'t': 'done'}))",
    "a call id out of range": "call(id=1 << 31)",
    "a call id of zero": "call(id=0)",
    "an occurrence below zero": "call(occurrence=-1)",
    "a payload that is not plain": "call(payload=float('nan'))",
    "an answer to itself": "say(Reply(nonce=nonce, id=1))",
    "a second Ready": "say(Ready(nonce=nonce))",
    "a call after Done": "say(Done(nonce=nonce)); call()",
    "a second Done": "say(Done(nonce=nonce), Done(nonce=nonce))",
}

#: Each would go on for ever; the allowance of output ends it, or a breach before that.
FLOODS = {
    "a flood of zeros": "raw(b'\\0' * 65536)",
    "a flood of junk": "frame(b'\\xc0' * (1 << 20))",
    "a flood of calls": "call(payload='x' * 100_000)",
    "a flood of heads": "raw((FRAMES.HEAD.pack(FRAMES.MAX_FRAME) + b'x') * 1000)",
}

#: Half a frame, and then nothing: the host can end it all the same.
SILENCE = "raw(b'\\0\\0')"


def script(code: str, *, again: str = "") -> str:
    """Return a script that sends this, and then waits for ever; ``again`` is sent over and over instead."""
    forever = again or "OS.read(OUT - 1, 1)"
    lines = ["async def orchestrate(ctx, args):", f"    {code or 'pass'}", "    while True:", f"        {forever}"]
    return "\n".join([SPEAK, *lines, ""])
