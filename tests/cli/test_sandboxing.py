"""`image build`, `sandbox acceptance`, and `budget`."""

import json

import pytest

from cli_support import RUN, FakeDaemon, report
from docker_support import docker_endpoint
from tallystick.cli import sandboxing
from tallystick.cli.main import main
from tallystick.engine import paths
from tallystick.sandbox.acceptance import Check
from tallystick.sandbox.acceptance.check import CHECKS
from tallystick.sandbox.docker.discovery import Endpoint
from tallystick.sandbox.protocol import Driver, SandboxError

__all__ = ["docker_endpoint"]

ALL = [Check(check=check, name="a way out", ok=True, detail="EPERM") for check in CHECKS]
BROKEN = Check(check="seccomp", name="socket", ok=False, detail="it was opened")


def finds(monkeypatch: pytest.MonkeyPatch, *checks: Check) -> list[str]:
    """Have acceptances find this; return the names of the drivers that they were for."""
    tried: list[str] = []

    async def run(driver: Driver) -> list[Check]:
        tried.append(driver.name)
        return list(checks)

    monkeypatch.setattr(sandboxing, "run", run)
    return tried


def test_an_acceptance_shows_each_check_and_exits_with_0_only_when_all_hold(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert finds(monkeypatch, *ALL) == []
    assert main(["sandbox", "acceptance", "--driver", "locked"]) == 0
    out = capsys.readouterr().out
    assert [name for name in CHECKS if name not in out] == []
    assert out.endswith("17 tries: every wall holds\n")

    finds(monkeypatch, *ALL, BROKEN)
    assert main(["sandbox", "acceptance", "--driver", "locked"]) == 1
    out = capsys.readouterr().out
    assert "FAIL   seccomp" in out
    assert "socket: it was opened" in out
    assert out.endswith("1 of 18 tries got through: do not run scripts of others here\n")


def test_an_acceptance_without_a_try_of_each_check_does_not_hold(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    finds(monkeypatch, *ALL[1:])
    assert main(["sandbox", "acceptance", "--driver", "locked", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["holds"] is False


def test_an_acceptance_tries_the_driver_that_the_daemon_would_use(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/s")
    tried = finds(monkeypatch, *ALL)
    assert main(["sandbox", "acceptance", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["driver"], said["holds"], len(said["checks"])) == ("locked", True, len(CHECKS))
    assert said["why"].startswith("no engine can be used: there is no engine at unix:///nowhere/s")
    assert main(["sandbox", "acceptance", "--driver", "docker"]) == 0
    assert tried == ["locked", "docker"]


def test_an_acceptance_of_what_cannot_start_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def run(driver: Driver) -> list[Check]:
        raise SandboxError("this kernel has no Landlock")

    monkeypatch.setattr(sandboxing, "run", run)
    assert main(["sandbox", "acceptance", "--driver", "locked"]) == 1
    assert "error[TS-R007]: the locked sandbox cannot start a guest: this kernel has no" in capsys.readouterr().err


@pytest.mark.long
def test_the_whole_acceptance_of_the_embedded_sandbox_holds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sandbox", "acceptance", "--driver", "locked"]) == 0
    assert "every wall holds" in capsys.readouterr().out


def test_an_image_is_not_built_where_no_engine_answers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/s")
    assert main(["image", "build"]) == 1
    assert "error[TS-R007]: the image was not built: there is no engine at unix:///nowhere/s" in capsys.readouterr().err


@pytest.mark.engine
def test_an_image_is_built_and_pinned_with_its_steps_told(
    docker_endpoint: Endpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    del docker_endpoint
    assert main(["image", "build", "--json"]) == 0
    out, err = capsys.readouterr()
    pin = json.loads(out)
    assert json.loads((paths.home() / "image.json").read_text()) == pin
    assert f"built {pin['image']}" in err


def test_a_budget_is_set_and_told(daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]) -> None:
    daemon.says("POST", f"/runs/{RUN}/budget", report())
    assert main(["budget", RUN, "0.50"]) == 0
    assert daemon.body("POST", f"/runs/{RUN}/budget")["budget_usd"] == 0.5
    assert capsys.readouterr().out.startswith(f"run {RUN} may spend $0.50 in all; ")
    assert main(["budget", RUN, "0.50", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["run"] == RUN
    assert main(["budget", RUN, "much"]) == 2
