"""A real daemon whose guests are containers: the first image, the choice, an engine that is not there, kill -9."""

import pytest

from daemon_support import premises
from docker_support import containers, docker_endpoint
from tallystick.sandbox.docker.discovery import Endpoint

__all__ = ["docker_endpoint"]

ONE = """
async def orchestrate(ctx, args):
    return await ctx.run("text.generate", {"prompt": "hello"})
"""
NOWHERE = {"DOCKER_HOST": "unix:///nowhere/docker.sock"}


@pytest.mark.engine
async def test_the_first_run_builds_the_image_and_tells_while_it_does(docker_endpoint: Endpoint) -> None:
    async with premises() as place:
        place.configure(sandbox={"driver": "auto"})
        async with place.open() as (daemon, client):
            status = await client.status()
            assert (status.driver, status.why_driver) == ("docker", f"an engine answers at {docker_endpoint}")
            run = await client.submit(ONE)
            lines = await client.lines(run)
            assert [line.text for line in lines if line.kind == "preparing" and line.text.startswith("built sha256:")]
            report = await client.show(run)
            assert report.status == "completed"
            (launch,) = report.launches
            assert (launch.driver, launch.image) == ("docker", (await client.status()).image)
            assert launch.image.startswith("sha256:")
            assert [entry for entry in daemon.logged("sandbox_prepares") if entry["text"] == f"built {launch.image}"]
            (sandbox,) = [check for check in (await client.doctor()).checks if check.name == "sandbox"]
            assert sandbox.ok
            assert f"docker (an engine answers at {docker_endpoint})" in sandbox.detail


async def test_where_no_engine_answers_the_daemon_is_locked_and_says_why() -> None:
    async with premises() as place:
        place.configure(sandbox={"driver": "auto"})
        async with place.open(environment=NOWHERE) as (_, client):
            status = await client.status()
            assert status.driver == "locked"
            assert status.why_driver.startswith(
                "no engine can be used: there is no engine at unix:///nowhere/docker.sock"
            )
            report = await client.end(await client.submit(ONE))
            assert (report.status, report.launches[0].driver) == ("completed", "locked")


async def test_docker_by_name_without_an_engine_starts_nothing_and_says_what_to_do() -> None:
    async with premises() as place:
        place.configure(sandbox={"driver": "docker"})
        async with place.open(environment=NOWHERE) as (_, client):
            report = await client.end(await client.submit(ONE))
            assert (report.status, report.reason) == ("failed", "TS-R007")
            assert report.error is not None
            assert "start one, or point DOCKER_HOST at it" in report.error.message
            (sandbox,) = [check for check in (await client.doctor()).checks if check.name == "sandbox"]
            assert not sandbox.ok
            assert "docker (sandbox.driver is docker; no engine can be used" in sandbox.detail
        assert place.hits == []


@pytest.mark.engine
async def test_containers_of_a_killed_daemon_are_gone_once_the_next_one_has_started(docker_endpoint: Endpoint) -> None:
    """Casebook 25, with the daemon itself."""
    async with premises() as place:
        await place.take_calls(sandbox={"driver": "docker"}, daemon={"auto_resume": False})
        async with place.open() as (daemon, client):
            store = (await client.status()).store
            run = await client.submit(ONE)
            (held,) = await place.desk.reached(1)
            left = await containers(store, docker_endpoint)
            assert len(left) == 1
            await daemon.kill()
            held.answer()
        async with place.open() as (_, client):
            report = await client.show(run)
            assert report.status == "interrupted"
            second = await client.submit(ONE)
            place.desk.open()
            assert (await client.end(second)).status == "completed"
            assert await containers(store, docker_endpoint) == []


@pytest.mark.engine
@pytest.mark.usefixtures("docker_endpoint")
async def test_a_pin_that_is_no_pin_is_named() -> None:
    async with premises() as place:
        place.configure(sandbox={"driver": "docker"})
        (place.state / "image.json").write_text("{")
        async with place.open() as (_, client):
            report = await client.end(await client.submit(ONE))
            assert report.error is not None
            assert (report.reason, "tally image build" in report.error.message) == ("TS-R007", True)
