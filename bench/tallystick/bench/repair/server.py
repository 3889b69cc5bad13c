"""A server on loopback that speaks the language of OpenAI's chat, and answers with a habit."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from tallystick.bench.repair.habits import prompt_of

#: Characters that are counted as a token.
_TOKEN = 4


class HabitServer:
    """``url`` is its base URL, ``asked`` how often it was asked; ``answer`` makes an answer of a prompt."""

    def __init__(self, answer: Callable[[str], str]) -> None:
        self.answer = answer
        self.url = ""
        self.asked = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                length = next((int(line[15:]) for line in head.split("\r\n") if line.startswith("content-length:")), 0)
                body = json.loads(await reader.readexactly(length))
                data = json.dumps(self._chat(body)).encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ")
                writer.write(f"{len(data)}\r\n\r\n".encode() + data)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _chat(self, body: dict[str, object]) -> dict[str, object]:
        self.asked += 1
        messages = body.get("messages")
        asked = messages if isinstance(messages, list) else []
        text = self.answer(prompt_of(asked))
        sent, made = len(json.dumps(asked)) // _TOKEN, len(text) // _TOKEN
        usage = {"prompt_tokens": sent, "completion_tokens": made, "total_tokens": sent + made}
        message = {"role": "assistant", "content": text}
        return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}


@asynccontextmanager
async def serving(answer: Callable[[str], str]) -> AsyncIterator[HabitServer]:
    """Serve on a free port of loopback until the block ends."""
    habits = HabitServer(answer)
    serving_now: set[asyncio.Task[None]] = set()

    def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(habits.serve(reader, writer))
        serving_now.add(task)
        task.add_done_callback(serving_now.discard)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1 << 22)
    habits.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield habits
    finally:
        server.close()
        for task in tuple(serving_now):
            task.cancel()
        await asyncio.gather(*serving_now, return_exceptions=True)
        await server.wait_closed()
