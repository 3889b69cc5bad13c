"""The keys that derive from an identity, pinned: a call keeps its key over retries, restarts and releases.

The values below are never changed to fit. Another encoding is another scheme, with another name in front.
"""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from tallystick.contract.identity import Identity
from tallystick.contract.keys import effect_key, revision_digest, sample_seed

SECRET = bytes(range(32))
HERE = Identity("orchestrate.shot/for1/#2", (3, "poster"), 1)
DIGEST = "ab" * 32

EFFECT = "ts-a944c1158fad733b1eb55944d25f1095ec8350f8"
SEED = 7303062658421524842
SEED_OF_TAKE = 43295694096256318
REVISION = "7d2eb5ab88c6f21c7b946c69173e16fb4f96c649a37c6deb7f40f32b6dd8277a"


def test_the_keys_are_what_they_were() -> None:
    assert effect_key(SECRET, "1kc00000zz111", HERE, capability="image.generate", digest=DIGEST, decisions=0) == EFFECT
    assert sample_seed(7, HERE, None) == SEED
    assert sample_seed(7, HERE, "second take") == SEED_OF_TAKE
    assert revision_digest("async def orchestrate(ctx, args): ...\n", b"\xc0") == REVISION


def test_an_effect_key_is_another_one_for_another_call() -> None:
    others = product(
        (SECRET, bytes(32)),
        ("r1", "r2"),
        (
            HERE,
            Identity(HERE.site, HERE.path, 2),
            Identity(HERE.site, (3,), 1),
            Identity("orchestrate/#1", HERE.path, 1),
        ),
        ("image.generate", "text.generate"),
        (DIGEST, "cd" * 32),
        (0, 1),
    )
    keys = [
        effect_key(secret, run, identity, capability=capability, digest=digest, decisions=decisions)
        for secret, run, identity, capability, digest, decisions in others
    ]
    assert len(set(keys)) == len(keys)


@given(st.integers(0, 2**63 - 1), st.text("ab/#", max_size=9), st.none() | st.text("ab", max_size=9))
def test_a_seed_has_63_bits_and_depends_on_nothing_else(run_seed: int, site: str, take: str | None) -> None:
    identity = Identity(site, (), 0)
    seed = sample_seed(run_seed, identity, take)
    assert 0 <= seed < 1 << 63
    assert seed == sample_seed(run_seed, identity, take)
    assert seed != sample_seed(run_seed, identity, f"{take}'")


def test_no_take_is_not_the_take_of_that_name() -> None:
    assert sample_seed(0, HERE, None) != sample_seed(0, HERE, "None")


def test_a_revision_is_its_source_and_its_args() -> None:
    names = {revision_digest(source, args) for source, args in (("a", b"bc"), ("ab", b"c"), ("", b"abc"), ("abc", b""))}
    assert len(names) == 4
    assert revision_digest("\ud800", b"") != revision_digest("?", b"")
