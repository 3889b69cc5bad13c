"""The APIs that the upstream speaks: OpenAI's images and chat, Seedream's images, and jobs to be asked after.

Each function does the work of one order and says what it made, what it used and what it bills (micro-dollars), or
raises ``RefusedOrderError`` with the error that such an API answers.
"""

import base64
import re
from collections.abc import Callable
from typing import Any

import msgspec

from upstream_content import fitting, picture

#: Micro-dollars: a token of text in and out, a token of a picture in and out, a picture of Seedream, a job.
TEXT_IN, TEXT_OUT, IMAGE_IN, IMAGE_OUT = 1, 4, 5, 40
SEEDREAM, JOB = 30_000, 25_000
TOKENS_PER_IMAGE = 1_000

_NAMED_SIZES = {"1K": (1024, 1024), "2K": (2048, 2048), "auto": (1024, 1024), "adaptive": (1024, 1024)}
_LARGEST = 4096


class RefusedOrderError(Exception):
    """The order is not one that the API takes: a status and a body."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": {"code": code, "message": message, "type": "invalid_request_error", "param": None}}


class Made(msgspec.Struct, frozen=True):
    """The body of the answer, and what the order costs."""

    body: dict[str, Any]
    cost: int


class Order(msgspec.Struct, frozen=True):
    """An order: its payload, its number among all orders, and how a file is put on the server to be linked to.

    ``scribe`` says what a chat answers to its messages, where a test has given the model a habit.
    """

    payload: dict[str, Any]
    number: int
    publish: Callable[[bytes], str]
    scribe: Callable[[list[Any]], str] | None = None


def openai_images(order: Order) -> Made:
    """Answer ``POST /v1/images/generations``: pictures inline unless links are asked for, priced by tokens."""
    prompt, count = _prompt(order), _count(order, 10)
    pictures = _pictures(order, count)
    used = {"input_tokens": len(prompt.split()), "output_tokens": TOKENS_PER_IMAGE * count}
    usage = {**used, "total_tokens": sum(used.values())}
    linked = order.payload.get("response_format") == "url"
    body = {"created": 1_750_000_000, "data": _data(order, pictures, linked=linked), "usage": usage}
    return Made(body, IMAGE_IN * used["input_tokens"] + IMAGE_OUT * used["output_tokens"])


def seedream_images(order: Order) -> Made:
    """Answer ``POST /api/v3/images/generations``: links unless asked otherwise, priced by the picture."""
    _prompt(order)
    pictures = _pictures(order, 1)
    linked = order.payload.get("response_format", "url") == "url"
    usage = {"generated_images": len(pictures), "output_tokens": 4_096, "total_tokens": 4_096}
    body = {"model": order.payload.get("model"), "created": 1_750_000_000, "usage": usage}
    return Made({**body, "data": _data(order, pictures, linked=linked)}, SEEDREAM * len(pictures))


def openai_chat(order: Order) -> Made:
    """Answer ``POST /v1/chat/completions`` with some text, or with data of the schema that is asked for."""
    messages = order.payload.get("messages") or []
    asked = " ".join(_texts(messages))
    if not asked.strip():
        raise RefusedOrderError(400, "invalid_request_error", "messages must not be empty")
    schema = (order.payload.get("response_format") or {}).get("json_schema", {}).get("schema")
    text = f"Answer {order.number} to: {asked[-80:]}" if order.scribe is None else order.scribe(messages)
    content = text if schema is None else msgspec.json.encode(fitting(schema, text)).decode()
    usage = {"prompt_tokens": len(asked.split()), "completion_tokens": len(content.split())}
    return Made(
        {
            "id": f"chat-{order.number}",
            "object": "chat.completion",
            "created": 1_750_000_000,
            "model": order.payload.get("model"),
            "choices": [{"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}],
            "usage": {**usage, "total_tokens": sum(usage.values())},
        },
        TEXT_IN * usage["prompt_tokens"] + TEXT_OUT * usage["completion_tokens"],
    )


def job_output(order: Order) -> Made:
    """Make what a job of ``POST /v1/jobs`` is for: pictures behind links, at a price that the answer states."""
    pictures = _pictures(order, _count(order, 4))
    body = {"output": _data(order, pictures, linked=True), "cost": {"amount": JOB / 1e6, "currency": "USD"}}
    return Made(body, JOB)


def check_job(order: Order) -> None:
    """Refuse an order that no job can be made of."""
    _prompt(order)
    _size(order)
    _count(order, 4)


def _prompt(order: Order) -> str:
    prompt = order.payload.get("prompt")
    if not isinstance(prompt, str) or not prompt.strip():
        raise RefusedOrderError(400, "InvalidParameter", "prompt must not be empty")
    return prompt


def _count(order: Order, most: int) -> int:
    count = order.payload.get("n", 1)
    if not isinstance(count, int) or not 1 <= count <= most:
        raise RefusedOrderError(400, "InvalidParameter", f"n must be between 1 and {most}")
    return count


def _size(order: Order) -> tuple[int, int]:
    size = order.payload.get("size", "auto")
    if size in _NAMED_SIZES:
        return _NAMED_SIZES[size]
    match = re.fullmatch(r"(\d+)x(\d+)", size) if isinstance(size, str) else None
    sides = (int(match[1]), int(match[2])) if match else (0, 0)
    if not all(0 < side <= _LARGEST for side in sides):
        raise RefusedOrderError(400, "InvalidParameter", f"the size {size} is not supported")
    return sides


def _pictures(order: Order, count: int) -> list[bytes]:
    width, height = _size(order)
    return [picture(width, height, order.number, index, order.payload.get("prompt")) for index in range(count)]


def _data(order: Order, pictures: list[bytes], *, linked: bool) -> list[dict[str, Any]]:
    if linked:
        return [{"url": order.publish(one)} for one in pictures]
    return [{"b64_json": base64.b64encode(one).decode()} for one in pictures]


def _texts(messages: list[dict[str, Any]]) -> list[str]:
    contents = [message.get("content") or "" for message in messages]
    return [
        part if isinstance(part, str) else part.get("text", "")
        for content in contents
        for part in ([content] if isinstance(content, str) else content)
    ]
