"""The examples of the documentation do what the pages say of them."""

import json
import re
import shlex
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
import typer

from docs_support import DOCS, ROOT, Block, all_blocks, blocks, pages, prose
from tallystick.cli import inputs
from tallystick.cli.main import app
from tallystick.contract.checker import check
from tallystick.contract.events import ErrorInfo
from tallystick.contract.script import read_script
from tallystick.engine.assembly import running
from tallystick.engine.config import Config, DaemonSettings, load
from tallystick.engine.host import Host
from tallystick.engine.messages import ErrorBody, Limits, RunRequest
from tallystick.kernel import SystemClock
from tallystick.providers import conformance
from tallystick.sandbox.memory import MemoryDriver
from tallystick.store.memory import MemoryStore

SCRIPTS = all_blocks("python script")
ARGS = {
    "brief": "a lighthouse keeper",
    "prompt": "a lamp in fog",
    "prompts": ["a lamp in fog", "a rope, coiled"],
    "strict": True,
}
ENVELOPE = Limits(grants=("storyboard.plan", "image.generate", "review.visual", "text.generate"), budget_usd=2.0)


def test_there_are_examples() -> None:
    assert SCRIPTS
    assert all_blocks("python refused")
    assert all_blocks("console")


@pytest.mark.parametrize("block", SCRIPTS, ids=str)
def test_a_script_passes_the_checker(block: Block) -> None:
    assert check(block.text).violations == ()


@pytest.mark.parametrize("block", all_blocks("python refused"), ids=str)
def test_a_refused_script_is_refused_by_that_rule_alone(block: Block) -> None:
    rules = block.info.split()[2:]
    assert [found.rule for found in check(block.text).violations if found.severity == "error"] == rules


def test_sites_are_where_the_contract_says() -> None:
    (block,) = blocks(DOCS / "contract.md", "python script sites")
    noted = dict(re.findall(r"^(.*?)  # (\S+)$", block.text, re.MULTILINE))
    lines = block.text.splitlines()
    found = {fact.site: lines[fact.span.line - 1] for fact in read_script(block.text).sites}
    assert {site: line for line, site in noted.items()} == {
        site: line.removesuffix(f"  # {site}") for site, line in found.items()
    }


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Host]:
    config = Config(daemon=DaemonSettings(warm=0))
    async with running(MemoryStore(), config, MemoryDriver(), home=tmp_path, clock=SystemClock()) as host:
        yield host


@pytest.mark.parametrize("block", SCRIPTS, ids=str)
async def test_a_script_runs_to_its_result(block: Block, engine: Host) -> None:
    started = await engine.service.submit(RunRequest(source=block.text, args=ARGS, limits=ENVELOPE))
    async for _ in engine.service.watch(started.run):
        pass
    report = await engine.service.report(started.run)
    assert (report.status, report.error, report.orphans) == ("completed", None, ())
    assert report.result


def provider_example() -> dict[str, Any]:
    (block,) = blocks(DOCS / "providers.md", "python provider")
    names: dict[str, Any] = {"__name__": "poem_package"}
    exec(compile(block.text, str(block), "exec"), names)
    return names


def poems(request: httpx.Request) -> httpx.Response:
    order = json.loads(request.content)
    return httpx.Response(200, json={"poem": f"{order['theme']}, {order['seed']}"})


@pytest.mark.parametrize("check", conformance.CHECKS, ids=str)
async def test_the_example_of_a_provider_conforms(check: conformance.Check) -> None:
    provider = provider_example()["PoemProvider"]

    def make(_: object) -> Any:
        return provider(httpx.AsyncClient(transport=httpx.MockTransport(poems), base_url="http://poems"))

    await check(conformance.Subject(make=make))


async def test_the_example_of_a_provider_is_made_from_its_settings() -> None:
    create = provider_example()["create"]
    await create({"url": "http://poems"}, conformance.ExampleArtifacts()).close()
    with pytest.raises(msgspec.ValidationError, match="speed"):
        create({"url": "http://poems", "speed": 3}, conformance.ExampleArtifacts())


@pytest.mark.parametrize("block", [block for block in all_blocks("python") if block.info == "python"], ids=str)
def test_other_python_compiles(block: Block) -> None:
    compile(block.text, str(block), "exec")


@pytest.mark.parametrize("block", all_blocks("toml"), ids=str)
def test_toml_is_what_it_is_for(block: Block, tmp_path: Path) -> None:
    path = tmp_path / "example.toml"
    path.write_text(block.text, encoding="utf-8")
    match block.info:
        case "toml":
            assert load(path) != Config()
        case "toml envelope":
            assert all(value is not None for value in msgspec.structs.astuple(inputs.read_envelope(path)))
        case _:
            assert tomllib.loads(block.text)


def test_the_error_object_has_the_programs_fields() -> None:
    (block,) = blocks(DOCS / "errors.md", "json")
    shown = json.loads(block.text)
    real = msgspec.to_builtins(ErrorBody(ErrorInfo("TS-P002", "…", "…")))
    assert shown == real


def commands() -> list[tuple[str, list[str]]]:
    """Return every command of the console blocks with the place it stands at, an alternative after ``|`` cut off."""
    found = []
    for block in all_blocks("console"):
        for line in block.text.splitlines():
            assert line.startswith("$ "), f"{block}: only commands stand in a console block"
            found.append((str(block), shlex.split(line.removeprefix("$ "))))
    return found


@pytest.mark.parametrize(("place", "words"), commands())
def test_a_command_can_be_given_so(place: str, words: list[str]) -> None:
    match words:
        case ["tally", *arguments]:
            parse(arguments)
        case ["make", target]:
            assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        case _:
            assert words[0] == "cp", place


def parse(arguments: list[str]) -> None:
    """Let the program read a command line, without carrying it out."""
    command: Any = typer.main.get_command(app)
    context = command.make_context("tally", list(arguments))
    while hasattr(command, "resolve_command"):
        name, command, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        context = command.make_context(name, rest, parent=context)


def test_a_wrong_command_is_noticed() -> None:
    with pytest.raises(typer.TyperException):
        parse(["run", "script.py", "--budgets", "1"])


def test_commands_within_the_text_exist_with_their_options() -> None:
    mentioned = {
        words
        for page in pages()
        for _, line in prose(page)
        for words in re.findall(r"`(?:\.venv/bin/)?tally ([^`]+)`", line)
    }
    assert mentioned
    unknown = set()
    for words in mentioned:
        command: Any = typer.main.get_command(app)
        for word in shlex.split(words):
            if word.startswith("-"):
                known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
                unknown |= {words} if word not in known else set()
            elif word in getattr(command, "commands", {}):
                command = command.commands[word]
        unknown |= {words} if hasattr(command, "commands") and "-" not in words else set()
    assert unknown == set()
