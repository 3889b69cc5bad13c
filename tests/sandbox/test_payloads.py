"""What a call may carry, seen from the script and compared with what the host will accept (casebook 14, 16-18)."""

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_support import NONCE, failing, played
from tallystick.contract.payload import PayloadError, canonical
from tallystick.sandbox.frames import MAX_PAYLOAD, MAX_RESULT, MAX_VALUES, Done
from tallystick.sandbox.guest.plain import NotPlainError, snapshot_payload, snapshot_result

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


def nested(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


class Twofaced(dict[str, int]):
    """A dict that answers differently each time."""


@given(PLAIN)
def test_a_snapshot_is_an_equal_copy_that_the_wire_and_the_digest_keep(value: Any) -> None:
    copy = snapshot_payload(value)
    assert msgspec.msgpack.encode(copy) == msgspec.msgpack.encode(value)
    assert canonical(copy) == canonical(value)
    assert canonical(msgspec.msgpack.decode(msgspec.msgpack.encode(copy))) == canonical(value)
    if isinstance(value, list | dict):
        assert copy is not value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"tags": {"a"}}, "payload.tags is a set; sets have no order; write sorted(...)"),
        ({"a": frozenset()}, "payload.a is a frozenset"),
        (b"x", "payload is a bytes; bytes travel as artifacts"),
        ([bytearray()], "payload[0] is a bytearray"),
        ({"x y": [1, 2j]}, "payload['x y'][1] is a complex; write [z.real, z.imag]"),
        ({"n": float("nan")}, "payload.n is nan; only finite numbers"),
        ({"n": [math.inf]}, "payload.n[0] is inf"),
        ({"n": -math.inf}, "payload.n is -inf"),
        (2**64, "payload is an integer of more than 64 bits; write str(...)"),
        (-(2**63) - 1, "payload is an integer of more than 64 bits"),
        ({1: "a", "1": "b"}, "payload has the key 1, which is no str; write str(...)"),
        ({"a": {None: 1}}, "payload.a has the key None"),
        ({(1, 2): 1}, "payload has the key of type tuple"),
        ("\ud800", "payload holds half a surrogate pair"),
        ({"\udfff": 1}, "payload holds half a surrogate pair"),
        (range(3), "payload is a range; write list(...)"),
        (map(str, [1]), "payload is a map; write list(...)"),
        ({}.keys(), "payload is a dict_keys; write sorted(...) or list(...)"),
        (print, "payload is a builtin_function_or_method; call it"),
        (object(), "payload is a object; send plain data"),
        (ValueError("x"), "payload is an exception; send its .kind or .text"),
        (Twofaced(), "payload is a Twofaced, which only derives from dict; write dict(...)"),
        (nested(65), "[0] is nested deeper than 64 levels"),
        ("x" * (MAX_PAYLOAD + 1), f"payload takes more than {MAX_PAYLOAD:,} bytes"),
        (["é" * (MAX_PAYLOAD // 2)], f"payload takes more than {MAX_PAYLOAD:,} bytes"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_what_is_not_plain_is_refused_with_its_place_and_what_to_write(value: Any, text: str) -> None:
    with pytest.raises(NotPlainError) as refused:
        snapshot_payload(value)
    assert text in str(refused.value)
    with pytest.raises(PayloadError):
        canonical(value)


def test_what_holds_itself_or_shares_its_parts_too_often_is_refused() -> None:
    ring: list[Any] = []
    ring.append(ring)
    with pytest.raises(NotPlainError, match="or holds itself"):
        snapshot_payload(ring)
    bomb: list[Any] = []
    for _ in range(40):
        bomb = [bomb, bomb]
    with pytest.raises(NotPlainError, match=f"at most {MAX_VALUES:,}"):
        snapshot_payload(bomb)


def test_the_deepest_and_the_largest_values_that_pass() -> None:
    assert snapshot_payload(nested(64)) == nested(64)
    assert len(snapshot_payload("x" * (MAX_PAYLOAD - 5))) == MAX_PAYLOAD - 5
    assert len(snapshot_payload([0] * (MAX_VALUES - 1))) == MAX_VALUES - 1
    assert len(snapshot_result("x" * (MAX_RESULT - 5))) == MAX_RESULT - 5
    canonical(nested(64))


def test_tuples_become_lists_and_shared_parts_equal_copies() -> None:
    part = {"a": (1, 2)}
    copy = snapshot_payload((part, part))
    assert copy == [{"a": [1, 2]}, {"a": [1, 2]}]
    assert copy[0] is not copy[1]


def test_booleans_integers_and_floats_stay_what_they_are() -> None:
    play = played('return await ctx.run("a", [True, 1, 1.0, -0.0, 0], _site="s")')
    assert repr(play.calls[0].payload) == "[True, 1, 1.0, -0.0, 0]"
    assert repr(play.result) == "[True, 1, 1.0, -0.0, 0]"


def test_each_branch_sends_what_the_payload_held_when_it_called() -> None:
    body = """
    p, branches = {}, []
    for word in ["a", "b"]:
        p["prompt"] = word
        branches.append(ctx.run("image.generate", p, _site="s"))
    p.clear()
    return await ctx.parallel(branches)
    """
    assert [call.payload for call in played(body).calls] == [{"prompt": "a"}, {"prompt": "b"}]


def test_a_payload_that_cannot_be_sent_is_an_invalid_request_and_consumes_nothing() -> None:
    body = """
    try:
        await ctx.run("a", {"tags": {1}}, _site="s")
    except CapabilityError as error:
        return [error.kind, error.text, await ctx.run("a", 1, _site="s")]
    """
    play = played(body)
    assert play.result == ["invalid_request", "payload.tags is a set; sets have no order; write sorted(...)", 1]
    assert play.identities == [("s", (), 0)]


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        ('ctx.run("a", 1)', "TypeError", "this call of a has no site; write it out as ctx.run('a', ...)"),
        ('ctx.run(7, 1, _site="s")', "TypeError", "the name of a capability"),
        ('ctx.run("a" * 300, 1, _site="s")', "TypeError", "the name of a capability"),
        ('ctx.run("a", 1, take=7, _site="s")', "CapabilityError", "take is a short text that names a sample, not 7"),
        ('ctx.run("a", 1, take="x" * 300, _site="s")', "CapabilityError", "take is a short text"),
        ('ctx.run("a", ctx.run("b", 1, _site="s"), _site="s")', "CapabilityError", "payload is a Request; await it"),
        ('ctx.run("a", ctx.parallel([]), _site="s")', "CapabilityError", "payload is a Request; await it first"),
    ],
)
def test_a_call_that_is_made_wrongly_says_how(call: str, kind: str, text: str) -> None:
    crash = played(f"return await {call}").crash
    assert crash.kind == kind
    assert text in crash.text
    assert crash.capability_error is None


def test_a_take_travels_with_its_call() -> None:
    assert played('await ctx.run("a", 1, take="second take", _site="s")').calls[0].take == "second take"


TOLERANT = 'rows = await ctx.parallel([ctx.run("a", i, _site="s") for i in range(2)], tolerate=True)'


@pytest.mark.parametrize(
    "rendering",
    ['f"{rows[1]}"', "str(rows[1])", 'f"{rows}"', '"%s" % rows[1]', 'f"{rows[1]!r:>9}"', '"{}".format(rows)'],
)
def test_a_failed_branch_never_becomes_text_by_accident(rendering: str) -> None:
    play = played(f'{TOLERANT}\n    await ctx.run("b", {{"prompt": {rendering}}}, _site="t")', by=failing(1))
    assert play.crash.kind == "TypeError"
    assert (
        "a failed branch was turned into text (it failed with rate_limited: no 1); look at it first" in play.crash.text
    )
    assert len(play.calls) == 2


def test_a_failed_branch_is_no_payload() -> None:
    play = played(f'{TOLERANT}\n    await ctx.run("b", {{"images": rows}}, _site="t")', by=failing(1))
    assert play.crash.text.startswith("invalid_request: payload.images[1] is a failed branch (rate_limited: no 1)")


def test_a_failed_branch_may_be_printed_and_looked_at() -> None:
    play = played(
        f"{TOLERANT}\n    print(rows, rows[1])\n    return [row.text for row in rows if not row and row != 0]",
        by=failing(1),
    )
    assert play.logs == ["[0, Failed('rate_limited', 'no 1')] Failed('rate_limited', 'no 1')"]
    assert play.result == ["no 1"]


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("{'a': [{1}]}", "result.a[0] is a set"),
        ("ctx", "result is a Context"),
        ("float('inf')", "result is inf"),
        (f"'x' * {MAX_RESULT + 1}", f"result takes more than {MAX_RESULT:,} bytes"),
    ],
)
def test_a_result_that_is_not_plain_ends_the_script_without_one(result: str, text: str) -> None:
    crash = played(f"return {result}").crash
    assert (crash.phase, crash.kind) == ("result", "TypeError")
    assert text in crash.text


def test_a_script_may_return_nothing() -> None:
    assert played("pass").frames == [Done(nonce=NONCE, value=None)]
