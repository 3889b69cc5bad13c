"""The grammar of sites, construct by construct (contract.md, section 2)."""

import ast
from textwrap import dedent, indent

import pytest

from tallystick.contract.sites import MAX_DEPTH, NestingError, assign_sites, collect_sites


def sites_of(source: str) -> list[str]:
    return list(assign_sites(ast.parse(dedent(source))).values())


def in_orchestrate(body: str) -> list[str]:
    return sites_of("async def orchestrate(ctx, args):\n" + indent(dedent(body), "    "))


def test_calls_are_numbered_in_their_block() -> None:
    assert in_orchestrate("""
        await ctx.run("a", {})
        for x in args:
            if x:
                await ctx.run("b", {})
                await ctx.run("c", {})
        await ctx.run("d", {})
    """) == ["orchestrate/#1", "orchestrate/for1/if1/#1", "orchestrate/for1/if1/#2", "orchestrate/#2"]


def test_functions_are_named_with_what_encloses_them_and_not_with_the_blocks_around_them() -> None:
    assert sites_of("""
        async def gen_one(ctx, s):
            return await ctx.run("a", {})

        async def orchestrate(ctx, args):
            if args:
                async def gen(s):
                    async def inner():
                        await ctx.run("b", {})
                    await ctx.run("c", {})
    """) == ["gen_one/#1", "orchestrate.gen.inner/#1", "orchestrate.gen/#1"]


def test_an_elif_is_an_if_in_the_else_of_the_first() -> None:
    assert in_orchestrate("""
        if a:
            await ctx.run("a", {})
        elif b:
            await ctx.run("b", {})
        else:
            await ctx.run("c", {})
    """) == ["orchestrate/if1/#1", "orchestrate/if1-else/if1/#1", "orchestrate/if1-else/if1-else/#1"]


def test_loops_and_their_else_blocks() -> None:
    assert in_orchestrate("""
        for x in xs:
            await ctx.run("a", {})
        else:
            await ctx.run("b", {})
        while x:
            await ctx.run("c", {})
        else:
            await ctx.run("d", {})
        async for x in xs:
            await ctx.run("e", {})
        with x:
            await ctx.run("f", {})
        async with x:
            await ctx.run("g", {})
    """) == [
        "orchestrate/for1/#1",
        "orchestrate/for1-else/#1",
        "orchestrate/while1/#1",
        "orchestrate/while1-else/#1",
        "orchestrate/for2/#1",
        "orchestrate/with1/#1",
        "orchestrate/with2/#1",
    ]


def test_try_blocks_count_the_handlers_that_bear_a_call() -> None:
    assert in_orchestrate("""
        try:
            await ctx.run("a", {})
        except ValueError:
            note = 1
        except CapabilityError:
            await ctx.run("b", {})
        except KeyError:
            await ctx.run("c", {})
        else:
            await ctx.run("d", {})
        finally:
            await ctx.run("e", {})
    """) == [
        "orchestrate/try1/#1",
        "orchestrate/try1-except1/#1",
        "orchestrate/try1-except2/#1",
        "orchestrate/try1-else/#1",
        "orchestrate/try1-finally/#1",
    ]


def test_cases_that_bear_a_call_are_counted_and_a_guard_belongs_to_its_case() -> None:
    assert in_orchestrate("""
        match await ctx.run("a", {}):
            case 1:
                note = 1
            case 2 if await ctx.run("b", {}):
                await ctx.run("c", {})
            case _:
                await ctx.run("d", {})
    """) == [
        "orchestrate/#1",
        "orchestrate/match1-case1/#1",
        "orchestrate/match1-case1/#2",
        "orchestrate/match1-case2/#1",
    ]


@pytest.mark.parametrize(
    "quiet",
    [
        "if debug:\n    note = 1",
        "for x in xs:\n    note = 1",
        "while x:\n    x = 0",
        "try:\n    note = 1\nexcept ValueError:\n    pass",
        "with x:\n    note = 1",
        "match x:\n    case 1:\n        note = 1",
        "def gen():\n    return 1",
        "note = lambda: 1",
        "note = {'poster': lambda: 1}",
        "if debug:\n    async def quiet():\n        return await other.run('x', {})",
    ],
)
def test_a_statement_without_a_call_shifts_nothing(quiet: str) -> None:
    committed = dedent("""
        if a:
            await ctx.run("a", {})
        for x in xs:
            await ctx.run("b", {})
        while a:
            await ctx.run("b", {})
        try:
            await ctx.run("c", {})
        except ValueError:
            pass
        with a:
            await ctx.run("d", {})
        match a:
            case 1:
                await ctx.run("e", {})
        async def gen():
            await ctx.run("f", {})
        stage = lambda: ctx.run("g", {})
        stage = {"poster": lambda: ctx.run("h", {})}
    """)
    assert in_orchestrate(f"{quiet}\n{committed}") == in_orchestrate(committed)


@pytest.mark.parametrize(
    "header",
    [
        'if await ctx.run("h", {}):\n    note = 1',
        'while await ctx.run("h", {}):\n    note = 1',
        'for x in await ctx.run("h", {}):\n    note = 1',
        'with await ctx.run("h", {}):\n    note = 1',
        'match await ctx.run("h", {}):\n    case 1:\n        note = 1',
    ],
)
def test_a_call_in_a_header_stands_in_the_enclosing_block_and_does_not_number_the_inner_one(header: str) -> None:
    blocks = dedent("""
        if a:
            await ctx.run("a", {})
        while a:
            await ctx.run("b", {})
        for x in xs:
            await ctx.run("c", {})
        with a:
            await ctx.run("d", {})
        match a:
            case 1:
                await ctx.run("e", {})
    """)
    assert in_orchestrate(f"{header}\n{blocks}") == ["orchestrate/#1", *in_orchestrate(blocks)]


def test_a_function_defined_in_a_block_does_not_number_the_block() -> None:
    assert in_orchestrate("""
        if a:
            async def gen():
                await ctx.run("a", {})
        if b:
            await ctx.run("b", {})
    """) == ["orchestrate.gen/#1", "orchestrate/if1/#1"]


def test_a_second_function_of_one_name_in_one_scope_is_numbered_if_both_bear_a_call() -> None:
    assert in_orchestrate("""
        async def gen():
            return 1
        if a:
            async def gen():
                await ctx.run("a", {})
        else:
            async def gen():
                async def gen():
                    await ctx.run("b", {})
    """) == ["orchestrate.gen/#1", "orchestrate.gen~2.gen/#1"]


def test_lambdas_are_counted_among_those_of_their_function_that_bear_a_call() -> None:
    assert in_orchestrate("""
        key = lambda x: x
        await ctx.pipeline(xs, lambda x: ctx.run("a", {}), key, lambda x: (lambda: ctx.run("b", {})))
        async def gen():
            return lambda: ctx.run("c", {})
    """) == [
        "orchestrate.<lambda1>/#1",
        "orchestrate.<lambda2>.<lambda1>/#1",
        "orchestrate.gen.<lambda1>/#1",
    ]


def test_a_lambda_in_a_dag_is_named_by_its_key_and_takes_no_number() -> None:
    before = """
        if a:
            await ctx.dag({
                "poster": ([], lambda d: ctx.run("a", {})),
            })
        if b:
            stage = lambda x: ctx.run("b", {})
            await ctx.run("c", {})
    """
    after = before.replace('"poster":', '"cover": lambda d: ctx.run("new", {}),\n"poster":')
    sites = ["orchestrate.<lambda:poster>/#1", "orchestrate.<lambda1>/#1", "orchestrate/if1/#1"]
    assert in_orchestrate(before) == sites
    assert in_orchestrate(after) == ["orchestrate.<lambda:cover>/#1", *sites]


def test_the_second_lambda_of_a_key_is_numbered_and_a_list_or_a_computed_key_names_none() -> None:
    assert in_orchestrate("""
        a = {"poster": (lambda: 1, lambda: ctx.run("a", {}), lambda: ctx.run("b", {}))}
        b = {"poster": lambda: ctx.run("c", {})}
        c = {"poster": [lambda: ctx.run("d", {})], key: lambda: ctx.run("e", {}), 1: lambda: ctx.run("f", {})}
        d = {**{"poster": 1}, "poster": (1, (lambda: ctx.run("g", {})))}
    """) == [
        "orchestrate.<lambda:poster>/#1",
        "orchestrate.<lambda:poster>~2/#1",
        "orchestrate.<lambda:poster>~3/#1",
        "orchestrate.<lambda1>/#1",
        "orchestrate.<lambda2>/#1",
        "orchestrate.<lambda3>/#1",
        "orchestrate.<lambda:poster>~4/#1",
    ]


def test_a_key_that_is_no_word_is_encoded_so_that_a_site_has_no_blank_and_no_quote() -> None:
    assert in_orchestrate(r"""
        a = {"final poster": lambda: ctx.run("a", {}), "é\"\ud800/%": lambda: ctx.run("b", {})}
    """) == ["orchestrate.<lambda:final%20poster>/#1", "orchestrate.<lambda:%C3%A9%22%ED%A0%80%2F%25>/#1"]


def test_a_race_has_a_site_of_its_own_and_makes_its_block_count() -> None:
    assert in_orchestrate("""
        if a:
            await ctx.race([ctx.run("a", {}), ctx.run("b", {})])
            await ctx.race([x])
        if b:
            await ctx.race([x])
    """) == [
        "orchestrate/if1/#1",
        "orchestrate/if1/#2",
        "orchestrate/if1/race1",
        "orchestrate/if1/race2",
        "orchestrate/if2/race1",
    ]


def capabilities(statement: str) -> list[str | None]:
    return [found.capability for found in collect_sites(ast.parse(f"async def f(ctx):\n    {statement}"))]


@pytest.mark.parametrize(
    "statement",
    [
        'ctx.run("2", ctx.run("1", {}))',
        'f(ctx.run("1", {}), *ctx.run("2", {}), k=ctx.run("3", {}))',
        'x[ctx.run("2", {})] = ctx.run("1", {})',
        'x[ctx.run("1", {})] += ctx.run("2", {})',
        'x = y[ctx.run("1", {})], (z := ctx.run("2", {}))',
        '{ctx.run("1", {}): ctx.run("2", {}), ctx.run("3", {}): 4}',
        '[ctx.run("3", {}) for x in ctx.run("1", {}) if ctx.run("2", {})]',
        '{ctx.run("2", {}): ctx.run("3", {}) for x in ctx.run("1", {})}',
        'ctx.run("2", {}) if ctx.run("1", {}) else ctx.run("3", {})',
        'ctx.run("1", {}) < ctx.run("2", {}) < ctx.run("3", {})',
        """f'{ctx.run("1", {})}{ctx.run("2", {})!r:{ctx.run("3", {})}}'""",
        'ctx.run("1", {}).sort(ctx.run("2", {}))',
        'x: ctx.run("2", {}) = ctx.run("1", {})',
        'def g(a=ctx.run("1", {}), *, b=ctx.run("2", {})): pass',
        'return x[ctx.run("1", {}):ctx.run("2", {}):ctx.run("3", {})]',
        'assert ctx.run("1", {}), ctx.run("2", {})',
        'raise ctx.run("1", {}) from ctx.run("2", {})',
        'with ctx.run("1", {}) as x[ctx.run("2", {})], ctx.run("3", {}): pass',
    ],
)
def test_calls_in_one_statement_are_numbered_in_the_order_of_evaluation(statement: str) -> None:
    found = capabilities(statement)
    assert found == [str(number) for number in range(1, len(found) + 1)]
    assert len(found) > 1


def test_defaults_and_decorators_stand_in_the_block_that_holds_the_definition() -> None:
    assert in_orchestrate("""
        if a:
            @ctx.run("a", {})
            def gen(x=ctx.run("b", {})) -> ctx.run("c", {}):
                return (lambda y=ctx.run("d", {}): y)
    """) == [
        "orchestrate/if1/#1",
        "orchestrate/if1/#2",
        "orchestrate/if1/#3",
        "orchestrate.gen/#1",
    ]


def test_only_a_call_of_run_or_race_on_ctx_is_a_site() -> None:
    assert (
        in_orchestrate("""
        context.run("a", {})
        ctx.parallel([])
        ctx.log("ctx.run('a', {})")
        run = ctx.run
        ctx.inner.run("a", {})
        ctx().run("a", {})
        self.ctx.run("a", {})
    """)
        == []
    )


def test_the_capability_is_the_literal_name_or_nothing() -> None:
    assert capabilities('ctx.run("a" "b", {}), ctx.run(payload={}, capability="c"), ctx.run(x, {}), ctx.run()') == [
        "ab",
        "c",
        None,
        None,
    ]


def test_every_tree_has_sites() -> None:
    assert sites_of("""
        ctx.run("a", {})
        class K(ctx.run("b", {})):
            ctx.run("c", {})
            def f(self):
                ctx.run("d", {})
    """) == ["<module>/#1", "<module>/#2", "K/#1", "K.f/#1"]


def test_syntax_of_a_later_python_is_walked_too() -> None:
    class Later(ast.stmt):
        _fields = ("value",)

    call = ast.parse("ctx.run('a', {})", mode="eval").body
    later = Later()
    later.value = call  # type: ignore[attr-defined]  # a field that only this class has
    assert assign_sites(ast.Module([later], [])) == {call: "<module>/#1"}


def test_a_tree_beyond_the_limit_is_refused_at_the_node_that_passes_it() -> None:
    shallow = "async def f(ctx):\n    x = " + "1 + " * (MAX_DEPTH - 10) + "2"
    assert collect_sites(ast.parse(shallow)) == []
    with pytest.raises(NestingError) as caught:
        collect_sites(ast.parse(shallow + " + 3" * 20))
    assert getattr(caught.value.node, "lineno", None) == 2
    with pytest.raises(NestingError):
        collect_sites(ast.parse("if a:\n    pass\n" + "elif a:\n    pass\n" * MAX_DEPTH))
