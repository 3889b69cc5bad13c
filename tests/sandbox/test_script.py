import builtins

import pytest

from sandbox_support import NONCE, Play, failing, played, script
from tallystick.sandbox.frames import (
    HEAD,
    MAX_LOG,
    MAX_NAME,
    MAX_TEXT,
    MAX_WHERE,
    Call,
    Crash,
    Done,
    FrameError,
    Log,
    Reply,
    Start,
    Sync,
    Synced,
    ToGuest,
    decode_to_host,
    pack,
)
from tallystick.sandbox.guest.core import Guest
from tallystick.sandbox.guest.log import MAX_TOTAL

GONE = (
    "open", "input", "eval", "exec", "compile", "getattr", "setattr", "delattr", "vars", "globals", "locals", "dir",
    "type", "id", "hash", "breakpoint", "help", "exit", "quit", "memoryview", "super", "property", "classmethod",
    "staticmethod", "__import__", "__build_class__", "__loader__", "__spec__", "BaseException", "SystemExit",
    "KeyboardInterrupt", "GeneratorExit", "BaseExceptionGroup",
)  # fmt: skip


@pytest.mark.parametrize("name", GONE)
def test_what_the_checker_bans_by_name_is_not_there(name: str) -> None:
    crash = played(f"return [{name}]").crash
    assert (crash.kind, crash.text) == ("NameError", f"name '{name}' is not defined")


def test_a_script_finds_the_harmless_builtins_and_every_error_it_may_catch() -> None:
    body = """
    return [sorted({3, 1}), max(1, 2), sum(map(int, "12")), isinstance(1, int), list(zip("ab", range(2))), len("abc"),
            round(2.5), any([0, 1]), f"{1.5:.2f}", "{:>3}".format(7), [k for k in reversed([1, 2])], chr(65), repr("a")]
    """
    assert played(body).result == [
        [1, 3], 2, 3, True, [["a", 0], ["b", 1]], 3, 2, True, "1.50", "  7", [2, 1], "A", "'a'",
    ]  # fmt: skip
    errors = [
        name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, Exception)
    ]
    assert played(f"return len([{', '.join(errors)}])").result == len(errors)


def test_classes_and_imports_do_not_work() -> None:
    assert played("class A: pass").crash.text == "__build_class__ not found"
    assert played("import os").crash.kind == "ImportError"


def test_names_of_unicode_characters_work() -> None:
    assert played(r'return "\N{BULLET}"').result == "•"


@pytest.mark.parametrize(
    ("source", "kinds", "where"),
    [
        ("x = 1\nasync def orchestrate(ctx, args)\n    pass\n", {"SyntaxError"}, ((2, "<module>"),)),
        ("x = (", {"SyntaxError"}, ((1, "<module>"),)),
        ("x = 1\n1 / 0\n", {"ZeroDivisionError"}, ((2, "<module>"),)),
        ("x = 1\0", {"SyntaxError", "ValueError"}, None),
        ("x = " + "(" * 5000 + ")" * 5000, {"SyntaxError"}, ((1, "<module>"),)),
        ("x = " + "-" * 200_000 + "1", {"RecursionError", "MemoryError"}, ()),
        ("", {"TypeError"}, ()),
        ("orchestrate = 7", {"TypeError"}, ()),
    ],
    ids=["colon", "unfinished", "raises", "nul", "parentheses", "deep", "empty", "no-function"],
)
def test_a_script_that_does_not_load_is_a_crash_of_that_phase(
    source: str, kinds: set[str], where: tuple[object, ...] | None
) -> None:
    crash = Play(source).crash
    assert crash.phase == "load"
    assert crash.kind in kinds
    assert where is None or crash.where == where


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("def orchestrate(ctx, args): return 7", "must be 'async def orchestrate(ctx, args)'; it returned a int"),
        ("async def orchestrate(ctx): pass", "takes 1 positional argument but 2 were given"),
    ],
)
def test_an_entry_point_of_another_shape_says_so(source: str, text: str) -> None:
    crash = Play(source).crash
    assert (crash.phase, crash.kind) == ("run", "TypeError")
    assert text in crash.text


def test_a_crash_names_the_lines_of_the_script_innermost_last() -> None:
    source = """
async def helper(ctx, i):
    value = await ctx.run("a", i, _site="helper/#1")
    return value["missing"]

async def orchestrate(ctx, args):
    async def branch(i):
        return await helper(ctx, i)
    return await ctx.parallel([branch(i) for i in range(2)])
"""
    crash = Play(source).to_end(failing()).crash
    assert crash == Crash(
        nonce=NONCE,
        kind="TypeError",
        text="'int' object is not subscriptable",
        where=((9, "orchestrate"), (8, "orchestrate.branch"), (4, "helper")),
    )


def test_an_error_that_the_script_makes_of_a_failure_is_its_own() -> None:
    body = """
    try:
        await ctx.run("a", 1, _site="s")
    except CapabilityError as error:
        raise ValueError(f"no picture: {error}") from error
    """
    crash = played(body, by=failing(1)).crash
    assert (crash.kind, crash.text, crash.capability_error) == ("ValueError", "no picture: rate_limited: no 1", None)


def test_a_failure_that_the_script_raises_itself_is_like_any_other() -> None:
    body = """
    async def branch():
        raise CapabilityError("unusable", "not what I wanted")
    rows = await ctx.parallel([branch()], tolerate=True)
    print(rows[0].kind)
    await branch()
    """
    play = played(body)
    assert play.logs == ["unusable"]
    assert (play.crash.text, play.crash.capability_error) == ("unusable: not what I wanted", None)


@pytest.mark.parametrize("value", ["-1", "1 << 31", "'3'", "True", "None", "[1]", "1.5", "'x' * 100_000", r"'\ud800'"])
@pytest.mark.parametrize(
    "error",
    [
        "CapabilityError(VALUE, VALUE)",
        "CapabilityError(VALUE)",
        "CapabilityError(kind=VALUE)",
        "CapabilityError('unusable', 'x', VALUE)",
        "SyntaxError('x', ('<script>', VALUE, VALUE, VALUE))",
        "forged(VALUE)",
    ],
)
def test_an_error_of_odd_parts_ends_a_script_like_any_other(error: str, value: str) -> None:
    forged = (
        'def forged(value):\n    error = CapabilityError("unusable", "x")\n    error.call_id = value\n    return error'
    )
    crash = played(f"raise {error.replace('VALUE', value)}", forged).crash
    assert decode_to_host(pack(crash)[HEAD.size :]) == crash
    assert crash.phase == "run"
    assert crash.capability_error is None


def test_what_is_awaited_shows_nothing_of_what_it_was_made_with() -> None:
    body = """
    call = ctx.run("a", {"prompt": "x"}, _site="s")
    for name in ("payload", "site", "capability", "take", "nodes", "branches", "tolerate"):
        assert not hasattr(call, name)
        assert not hasattr(ctx.parallel([]), name)
    try:
        call.payload = {"prompt": "y"}
    except AttributeError as error:
        print(error)
    return await call
    """
    play = played(body)
    assert play.result == {"prompt": "x"}
    assert "payload" in play.logs[0]


def test_endless_recursion_and_vast_messages_are_bounded() -> None:
    deep = played("def f(n): return f(n + 1)\n    f(0)").crash
    assert deep.kind == "RecursionError"
    assert len(deep.where) == MAX_WHERE
    assert len(played(f"raise ValueError('x' * {MAX_TEXT * 3})").crash.text) == MAX_TEXT
    name = "f" * 2 * MAX_NAME
    assert len(played(f"{name}()", f"def {name}(): return 1 / 0").crash.where[-1][1]) == MAX_NAME


def test_an_error_whose_text_cannot_be_made_or_sent_is_reported_all_the_same() -> None:
    looped = "x = []\n    for _ in range(100_000): x = [x]\n    raise ValueError(x)"
    assert played(looped).crash.text == "its text could not be made: RecursionError"
    assert played(r"raise ValueError('a\ud800b')").crash.text == "a?b"


@pytest.mark.filterwarnings("ignore:coroutine '_branch'")  # of the branches that did not start
@pytest.mark.parametrize("name", ["SystemExit", "KeyboardInterrupt", "GeneratorExit"])
def test_exit_tricks_end_the_launch_without_a_result(name: str) -> None:
    body = f"""
    stop = CapabilityError.__init__.__globals__["__builtins__"]["{name}"]
    async def branch():
        raise stop(0)
    try:
        await ctx.parallel([branch(), ctx.run("a", 1, _site="s")], tolerate=True)
    except Exception:
        return "caught"
    """
    play = played(body)
    assert play.crash.kind == name
    assert play.calls == []


def test_awaiting_something_of_ones_own_is_an_error_in_that_place() -> None:
    body = """
    @CapabilityError.__init__.__globals__["__builtins__"]["__import__"]("types").coroutine
    def own():
        yield 5
    await own()
    """
    crash = played(body).crash
    assert (crash.kind, crash.text) == ("TypeError", "only what ctx offers can be awaited; this awaited a int")
    assert crash.where[0] == (5, "orchestrate")


def test_prints_are_lines_of_the_log() -> None:
    body = r"""
    print("a", 1, [None], sep="-")
    print()
    print("no", "newline", end="")
    print("x", file=None, flush=True)
    ctx.log({"k": 1})
    ctx.log("bad \ud800 text")
    print("as", "bad", sep="\ud800", end="\udfff")
    """
    assert played(body).logs == ["a-1-[None]", "", "no newline", "x", "{'k': 1}", "bad ? text", "as?bad?"]


def test_a_line_and_a_log_are_cut_off_at_their_limits() -> None:
    line = played(f"print('x' * {MAX_LOG * 2})").logs[0]
    assert len(line) == MAX_LOG
    assert line.endswith(f"... ({MAX_LOG * 2:,} characters in all)")
    flood = played("for i in range(10 ** 6): print()")
    assert len(flood.logs) < MAX_TOTAL // 50
    assert flood.logs[-1] == f"(the log is full at {MAX_TOTAL:,} characters: later lines are not kept)"


def test_logs_leave_before_the_calls_of_the_same_step() -> None:
    play = Play(script('print("before")\n    await ctx.run("a", 1, _site="s")\n    print("after")'))
    assert [type(frame).__name__ for frame in play.to_end().frames] == ["Log", "Call", "Log", "Done"]


def test_a_guest_refuses_frames_that_make_no_sense() -> None:
    source = script('await ctx.run("a", 1, _site="s")')
    start = Start(nonce=NONCE, source=source, args=None)
    reply = Reply(nonce=NONCE, id=1)
    refused: list[tuple[list[ToGuest], ToGuest]] = [
        ([], reply),
        ([], Start(nonce="another", source=source, args=None)),
        ([start], start),
        ([start], Reply(nonce=NONCE, id=2)),
        ([start, reply], reply),
        ([Start(nonce=NONCE, source="?", args=None)], start),
    ]
    for history, frame in refused:
        guest = Guest(NONCE)
        for past in history:
            guest.feed([past])
        with pytest.raises(FrameError):
            guest.feed([frame])


def test_two_answers_to_one_call_in_one_batch_are_refused() -> None:
    guest = Guest(NONCE)
    guest.feed([Start(nonce=NONCE, source=script('print(await ctx.run("a", 1, _site="s"))'), args=None)])
    with pytest.raises(FrameError, match="call 1, which is not in flight"):
        guest.feed([Reply(nonce=NONCE, id=1), Reply(nonce=NONCE, id=1)])


def test_arguments_are_the_scripts_own() -> None:
    play = Play(script('args["n"] += 1\n    print(args)\n    return args["n"]'), {"n": 1})
    assert play.frames[0] == Log(nonce=NONCE, text="{'n': 2}")
    assert play.result == 2


def test_who_asks_when_all_branches_wait_hears_that_or_the_end_and_never_both() -> None:
    guest = Guest(NONCE)
    start = Start(nonce=NONCE, source=script('return await ctx.run("a", 1, _site="s")'), args=None)
    call, synced = guest.feed([start, Sync(nonce=NONCE, id=1)])
    assert (type(call), synced) == (Call, Synced(nonce=NONCE, id=1))
    assert guest.feed([Reply(nonce=NONCE, id=1, value=7), Sync(nonce=NONCE, id=2)]) == [Done(nonce=NONCE, value=7)]
