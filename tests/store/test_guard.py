"""Sharers share, and whoever is alone is."""

import threading

import pytest

from tallystick.store.guard import ShareGuard


def test_nobody_shares_while_one_is_alone() -> None:
    guard = ShareGuard()
    inside: list[str] = []
    clashes: list[list[str]] = []
    start = threading.Barrier(6)

    def enter(kind: str) -> None:
        start.wait()
        for _ in range(200):
            with guard.alone() if kind == "alone" else guard:
                inside.append(kind)
                if "alone" in inside and len(inside) > 1:
                    clashes.append(list(inside))
                inside.remove(kind)

    threads = [threading.Thread(target=enter, args=(kind,)) for kind in ["alone"] * 2 + ["shared"] * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clashes == []


def test_sharers_share() -> None:
    guard = ShareGuard()
    together = threading.Barrier(2)

    def share() -> None:
        with guard:
            together.wait(timeout=30)

    other = threading.Thread(target=share)
    other.start()
    share()
    other.join()
    assert not together.broken


def test_an_error_inside_gives_the_guard_back() -> None:
    guard = ShareGuard()
    with pytest.raises(KeyError), guard:
        raise KeyError
    with pytest.raises(KeyError), guard.alone():
        raise KeyError
    with guard.alone():
        pass
