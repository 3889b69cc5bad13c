"""What one call may send: one order, and questions after it."""

import httpx
import pytest

from tallystick.providers.http.exchange import Answer, Lost, NotSent, Sent
from tallystick.providers.litellm.wire import Order, SecondRequestError

ORDER = httpx.Request("POST", "http://api.example/orders", json={"prompt": "a mug"})
QUESTION = httpx.Request("GET", "http://api.example/orders/1")
DONE = Answer(status=200, headers={"content-encoding": "gzip"}, body=b"{}")


def order(*ends: Sent) -> Order:
    """Return an order whose requests end so, one after another."""
    left = list(ends)

    async def relay(_: httpx.Request) -> Sent:
        return left.pop(0)

    return Order(relay, {"Idempotency-Key": "key-1"})


async def test_a_second_order_is_not_sent_and_changes_nothing() -> None:
    call = order(DONE)
    await call.send(ORDER)
    with pytest.raises(SecondRequestError):
        await call.send(ORDER)
    assert call.sent == DONE


async def test_an_order_that_did_not_leave_is_not_tried_again_either() -> None:
    call = order(NotSent("no connection"))
    with pytest.raises(httpx.ConnectError):
        await call.send(ORDER)
    with pytest.raises(SecondRequestError):
        await call.send(ORDER)
    assert call.sent == NotSent("no connection")


@pytest.mark.parametrize(
    "end", [Answer(status=404, headers={}, body=b""), NotSent("no name"), Lost("reset", "unavailable")]
)
async def test_a_question_that_fails_does_not_undo_the_order(end: Sent) -> None:
    call = order(DONE, end)
    await call.send(ORDER)
    try:
        await call.send(QUESTION)
    except httpx.TransportError:
        assert not isinstance(end, Answer)
    assert isinstance(call.sent, Lost)


async def test_the_last_answer_to_a_question_counts_and_comes_decoded() -> None:
    ready = Answer(status=200, headers={}, body=b'{"ready": true}')
    call = order(DONE, ready)
    assert "content-encoding" not in (await call.send(ORDER)).headers
    assert (await call.send(QUESTION)).json() == {"ready": True}
    assert call.sent == ready


async def test_a_question_before_the_order_is_no_order() -> None:
    call = order(DONE, NotSent("no connection"))
    await call.send(QUESTION)
    assert call.sent is None
    with pytest.raises(httpx.ConnectError):
        await call.send(ORDER)
    assert call.sent == NotSent("no connection")
