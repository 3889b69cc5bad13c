"""docs/api.md: its routes are those of the program's OpenAPI document, its examples those of its structs."""

import json
import re
from collections.abc import Iterator
from typing import Any, cast, get_args

import msgspec
import pytest
import typer

from docs_support import DOCS, Block, blocks, marked_rows
from tallystick.cli.demo.story import Outcome
from tallystick.cli.main import app
from tallystick.engine import messages, money_messages
from tallystick.engine.api import create_app
from tallystick.engine.authoring import messages as authoring
from tallystick.engine.messages import Progress, ProgressKind, Region

PAGE = DOCS / "api.md"
EXAMPLES = blocks(PAGE, "json ")


def kind_of(block: Block) -> Any:
    name = block.info.split()[1]
    return next(kind for part in (messages, money_messages, authoring) if (kind := getattr(part, name, None)))


def served() -> Iterator[list[str]]:
    """Yield request, body and answer of every operation as the page writes them."""
    schema = create_app(cast("Any", None)).openapi_schema.to_schema()
    for path, operations in schema["paths"].items():
        for method in ("get", "post"):
            if method in operations:
                operation = operations[method]
                query = [each["name"] for each in operation.get("parameters", []) if each["in"] == "query"]
                body = content(operation.get("requestBody", {}))
                ((status, answer),) = [item for item in operation["responses"].items() if item[0].startswith("2")]
                asked = f"`{method.upper()} {path}{'?' + '&'.join(query) if query else ''}`"
                yield [asked, body, f"{status} {content(answer)}"]


def content(of: dict[str, Any]) -> str:
    for media_type, found in of.get("content", {}).items():
        schema = found["schema"]
        match media_type:
            case "application/octet-stream":
                return "bytes"
            case "text/event-stream":
                return f"stream of {name(schema)}"
            case _:
                return f"list of {name(schema['items'])}" if schema.get("type") == "array" else name(schema)
    return "none"


def name(schema: dict[str, str]) -> str:
    return f"`{schema['$ref'].rpartition('/')[2]}`"


def test_the_routes_are_those_of_the_openapi_document() -> None:
    assert sorted(row[:3] for row in marked_rows(PAGE, "routes")) == sorted(served())


def test_each_body_and_answer_has_an_example() -> None:
    named = {name for row in marked_rows(PAGE, "routes") for cell in row[1:3] for name in re.findall(r"`(\w+)`", cell)}
    assert named == {block.info.split()[1] for block in EXAMPLES}


@pytest.mark.parametrize("block", EXAMPLES, ids=lambda block: block.info)
def test_an_example_has_every_field_and_no_other(block: Block) -> None:
    found = msgspec.json.decode(block.text, type=kind_of(block))
    assert json.loads(msgspec.json.encode(found)) == json.loads(block.text)


def test_the_table_of_progress_has_every_kind() -> None:
    rows = re.findall(r"^\| (`[a-z`, ]+`) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    named = [kind for row in rows for kind in re.findall(r"`(\w+)`", row)]
    assert sorted(named) == sorted(get_args(ProgressKind))
    (block,) = blocks(PAGE, "json Progress")
    assert set(json.loads(block.text)) == set(Progress.__struct_fields__)


def test_what_the_page_says_of_columns_is_what_the_struct_says() -> None:
    assert Region.__doc__ is not None
    for text in (Region.__doc__, PAGE.read_text(encoding="utf-8")):
        assert "lines[line - 1][column:end_column]" in text


def commands(of: Any, path: str = "tally") -> Iterator[str]:
    for word, command in of.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{path} {word}")
        else:
            yield f"{path} {word}"


def test_every_command_has_a_line_that_says_what_it_prints() -> None:
    listed = [row[0].strip("`") for row in marked_rows(PAGE, "commands")]
    assert sorted(listed) == sorted(commands(typer.main.get_command(app)))


def test_what_the_demo_prints_has_the_fields_of_its_line() -> None:
    (line,) = [row[1] for row in marked_rows(PAGE, "commands") if row[0] == "`tally demo`"]
    assert tuple(re.findall(r"\"(\w+)\":", line)) == Outcome.__struct_fields__
