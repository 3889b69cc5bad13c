import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import EntryPoint, version
from typing import Any

import pytest

from provider_support import MemoryArtifacts
from scripted_provider import ScriptedProvider, install
from tallystick.contract.errors import UsageError
from tallystick.providers import registry
from tallystick.providers.registry import GROUP, ProviderSetupError


def entry(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, GROUP)


def refusal(name: str, *installed: EntryPoint, settings: Mapping[str, Any] | None = None) -> ProviderSetupError:
    with pytest.raises(ProviderSetupError) as caught:
        registry.load(name, settings or {}, MemoryArtifacts(), installed=installed or None)
    assert isinstance(caught.value, UsageError)
    assert caught.value.hint
    return caught.value


class AncientProvider(ScriptedProvider):
    api_version = 0


def create_ancient(settings: Mapping[str, Any], artifacts: Any) -> ScriptedProvider:
    return AncientProvider()


def create_broken(settings: Mapping[str, Any], artifacts: Any) -> ScriptedProvider:
    raise RuntimeError("no socket")


def create_picky(settings: Mapping[str, Any], artifacts: Any) -> ScriptedProvider:
    raise ValueError("the model is missing")


def create_unready(settings: Mapping[str, Any], artifacts: Any) -> ScriptedProvider:
    raise ProviderSetupError("no key for this model", hint="set MODEL_KEY")


HERE = "provider_factories"


@pytest.fixture(autouse=True)
def factories(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, HERE, sys.modules[__name__])


def test_the_local_provider_is_found_by_its_entry_point() -> None:
    loaded = registry.load("local", {"price": "zero"}, MemoryArtifacts())
    assert loaded.provider.name == "local"
    assert (loaded.distribution, loaded.version) == ("tallystick", version("tallystick"))
    assert "local" in registry.known()


def test_an_unknown_name_gets_the_known_ones_and_the_nearest() -> None:
    error = refusal("locla", entry("local", "x:y"), entry("http", "x:y"))
    assert error.message == 'there is no provider "locla"; installed are http, local'
    assert error.hint == 'did you mean "local"?'
    assert "install the package" in refusal("zzz", entry("local", "x:y")).hint


def test_a_package_that_is_not_there_is_named_with_what_to_install() -> None:
    error = refusal("far", entry("far", "no_such_package.provider:create"))
    assert "cannot be imported" in error.message
    assert error.hint == "install no_such_package into the environment of tallystick"


def test_a_factory_that_is_not_there_is_the_packages_fault() -> None:
    error = refusal("far", entry("far", f"{HERE}:create_nothing"))
    assert "create_nothing" in error.message
    assert "reinstall or update" in error.hint


def test_a_module_that_fails_at_its_import_is_the_packages_fault(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "provider_that_fails.py").write_text("1 / 0\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    error = refusal("far", entry("far", "provider_that_fails:create"))
    assert "ZeroDivisionError" in error.message


def test_another_interface_version_is_refused() -> None:
    error = refusal("old", entry("old", f"{HERE}:create_ancient"))
    assert error.message == 'the provider "old" speaks version 0 of the provider interface; this is 1'


def test_bad_settings_are_named() -> None:
    error = refusal("local", settings={"price": "free"})
    assert 'settings of the provider "local" are wrong' in error.message
    assert "free" in error.message
    assert "unknown field `prise`" in refusal("local", settings={"prise": "zero"}).message
    assert "the model is missing" in refusal("far", entry("far", f"{HERE}:create_picky")).message


def create_named(settings: Mapping[str, Any], artifacts: Any) -> ScriptedProvider:
    if settings != {"model": "m-1"}:
        raise ValueError(f"strange settings: {dict(settings)}")
    return ScriptedProvider()


def test_one_plugin_serves_under_several_names() -> None:
    installed = (entry("far", f"{HERE}:create_named"),)
    settings = {"plugin": "far", "model": "m-1"}
    assert registry.load("near", settings, MemoryArtifacts(), installed=installed).provider.name == "scripted"


def test_what_is_wrong_with_a_named_plugin_is_said_of_that_name() -> None:
    wrong = refusal("near", entry("far", f"{HERE}:create_named"), settings={"plugin": "far", "modle": "m-1"})
    assert 'the provider "near"' in wrong.message
    assert "near" in wrong.hint
    missing = refusal("near", entry("far", f"{HERE}:create_named"), settings={"plugin": "fra"})
    assert (missing.message, missing.hint) == ('there is no provider "fra"; installed are far', 'did you mean "far"?')


def test_a_factory_may_explain_itself() -> None:
    error = refusal("far", entry("far", f"{HERE}:create_unready"))
    assert (error.message, error.hint) == ("no key for this model", "set MODEL_KEY")


def test_a_factory_that_fails_is_the_packages_fault() -> None:
    error = refusal("far", entry("far", f"{HERE}:create_broken"))
    assert "RuntimeError: no socket" in error.message


def test_only_the_named_provider_is_imported(tmp_path: Any) -> None:
    install(tmp_path)
    program = (
        "import sys; from tallystick.providers import registry; names = registry.known();"
        "registry.load('local', {}, None); print('scripted' in names, 'scripted_provider' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True, env={"PYTHONPATH": str(tmp_path)}
    )
    assert done.stdout.strip() == "True False"
