"""A key in the daemon's environment is sent where it belongs, and stands in nothing that is written or printed."""

import base64
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio.to_thread
import pytest

from daemon_support import Client, premises
from tallystick.cli.main import main
from tallystick.engine.paths import HOME_VARIABLE
from upstream_faults import Fault
from upstream_server import Upstream, running

SECRET = "sk-planted/7c21+d8e0&4f9a"
VARIABLE = "PLANTED_KEY"
SCRIPT = """
async def orchestrate(ctx, args):
    print("begin")
    try:
        made = await ctx.run("image.generate", {"prompt": args["prompt"], "size": "64x48"})
    except CapabilityError as error:
        print(error.text)
        return error.text
    return made["images"]
"""
FAULTS = [
    Fault(),
    Fault(echo=True),
    *(Fault(status=status, echo=True) for status in (400, 401, 429, 500)),
    Fault(status=400, body=f"your key {SECRET} is odd"),
    Fault(status=400, body={"error": {"code": SECRET, "message": f"no {SECRET}"}}),
    Fault(drop="cut"),
    Fault(lie="broken", echo=True),
    Fault(lie="empty"),
]
COMMANDS = (
    ("show",),
    ("attempts",),
    ("cost",),
    ("explain", "orchestrate/try1/#1 [] 0"),
    ("artifacts",),
    ("certificate", "--verify"),
)
FORMS = {
    form.encode()
    for form in (SECRET, quote(SECRET), quote(SECRET, safe=""), json.dumps(SECRET)[1:-1], SECRET.split("/")[1])
} | {base64.b64encode(SECRET.encode())}


def configuration(url: str) -> str:
    return f"""
[daemon]
warm = 0
[sandbox]
driver = "locked"
[capabilities."image.generate"]
provider = "studio"
[providers.studio]
plugin = "http"
base_url = "{url}/v1"
key = {{env = "{VARIABLE}", header = "X-Api-Key", form = "{{key}}"}}
idempotency_header = "Idempotency-Key"
proxy = false
downloads = {{allow = ["127.0.0.0/8"]}}
[providers.studio.operations."image.generate"]
path = "/jobs"
body = {{prompt = "{{prompt}}", size = "{{size}}"}}
result = {{images = {{"$files" = "output[*]", url = "url"}}, width = "{{$width}}", height = "{{$height}}"}}
job = {{id = "id", path = "/jobs/{{$job}}", done = ["succeeded"], failed = ["failed"], interval = 0.01}}
price = {{stated = "cost.amount", currency = "cost.currency"}}
"""


async def printed(capsys: pytest.CaptureFixture[str], *argv: str) -> bytes:
    """Return everything that a command prints, for people and for programs."""
    for more in ([], ["--json"]):
        await anyio.to_thread.run_sync(main, [*argv, *more])
    return "".join(capsys.readouterr()).encode()


async def tell(client: Client, upstream: Upstream) -> list[str]:
    """Run the script once for each fault, and return the runs."""
    runs = []
    for number, fault in enumerate(FAULTS):
        upstream.calm()
        upstream.script(fault, times=None)
        run = await client.submit(SCRIPT, {"prompt": f"shot <{number}>"})
        await client.end(run)
        runs.append(run)
    return runs


def written(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and not path.is_socket()}


async def test_a_planted_key_is_in_nothing_that_is_written_or_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running() as upstream, premises() as place:
        monkeypatch.setenv(HOME_VARIABLE, str(place.state))
        monkeypatch.setenv(VARIABLE, SECRET)  # the daemon has it from whoever starts it, and so has the command
        place.write_config(configuration(upstream.url))
        outputs: list[bytes] = []
        answers: list[Any] = []
        async with place.open() as (daemon, client):
            runs = await tell(client, upstream)
            answers += [await client.show(run) for run in runs]
            answers += [await client.attempts(run) for run in runs]
            answers += [await client.lines(run) for run in runs]
            answers += [await client.doctor(), await client.status()]
            for run in (runs[0], runs[-1]):
                outputs += [await printed(capsys, command, run, *rest) for command, *rest in COMMANDS]
            for argv in (["config", "show"], ["config", "check"], ["doctor"], ["runs"], ["capabilities"]):
                outputs += [await printed(capsys, *argv)]
            logged = json.dumps(daemon.events).encode()
        assert any(hit.headers.get("x-api-key") == SECRET for hit in upstream.hits), "it was sent: so it could be found"
        assert any(b"[key]" in data for data in written(place.state).values()), "and it was echoed"
        seen = {**written(place.folder), **{Path(f"output {number}"): data for number, data in enumerate(outputs)}}
        seen[Path("log")] = logged
        seen[Path("answers")] = repr(answers).encode()
        found = {path.name for path, data in seen.items() for form in FORMS if form in data}
        assert found == set()


async def test_a_missing_key_names_its_variable_before_anything_is_sent() -> None:
    async with running() as upstream, premises() as place:
        place.write_config(configuration(upstream.url))
        async with place.open() as (_, client):
            run = await client.submit(SCRIPT, {"prompt": "x"})
            report = await client.end(run)
            assert (report.reason, upstream.hits) == ("TS-P006", [])
            assert report.error is not None
            assert VARIABLE in report.error.message
