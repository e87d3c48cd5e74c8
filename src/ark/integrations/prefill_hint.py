"""An early hint for each prefill request of vLLM's server, by its option ``--middleware``."""

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, Final

import msgspec

from ark.integrations.hints import Hints, model_from

BYTES_A_TOKEN: Final = 4
"""Text of one token, roughly, where a prompt comes as text."""

BODY_MAX: Final = 16 * 2**20
"""Bytes of a request's body that are looked at; a longer one gets no hint."""

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class PrefillHint:
    """ASGI middleware that announces the transfers of the prefill requests which come from decode hosts.

    llm-d's sidecar runs beside the decode engine and sends the prefill request from there, marked with
    ``do_remote_decode``: who asks is the decode host. A prompt given as text is counted as 4 bytes a token.
    """

    def __init__(
        self, app: Callable[[Scope, Receive, Send], Awaitable[None]], hints: Hints | None = None
    ) -> None:
        self._app = app
        self._hints = Hints(model_from()) if hints is None else hints

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope.get("type") != "http" or scope.get("method") != "POST":
            await self._app(scope, receive, send)
            return
        body, again = await _peek(receive)
        tokens = prompt_tokens(body)
        client = scope.get("client") if tokens else None
        async with self._hints.expected(client[0] if client else None, tokens) as transfer:

            async def send_on(message: MutableMapping[str, Any]) -> None:
                await transfer.begin()
                await send(message)

            await self._app(scope, again, send_on)


class _Handoff(msgspec.Struct):
    do_remote_decode: bool = False


class _Prefill(msgspec.Struct):
    kv_transfer_params: _Handoff | None = None
    prompt: str | list[int | str | list[int]] | None = None
    messages: msgspec.Raw = msgspec.Raw(b"")


def prompt_tokens(body: bytes) -> int:
    """Tokens of the prompt in a prefill request's body, about; 0 if it is none."""
    if b'"do_remote_decode"' not in body:
        return 0
    try:
        request = msgspec.json.decode(body, type=_Prefill)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return 0
    if request.kv_transfer_params is None or not request.kv_transfer_params.do_remote_decode:
        return 0
    prompt = request.prompt
    if prompt is None:
        return -(-len(bytes(request.messages)) // BYTES_A_TOKEN)
    return _tokens(prompt)


def _tokens(prompt: "str | Sequence[int | str | list[int]]") -> int:
    if isinstance(prompt, str):
        return -(-len(prompt.encode(errors="replace")) // BYTES_A_TOKEN)
    return sum(1 if isinstance(part, int) else _tokens(part) for part in prompt)


async def _peek(receive: Receive) -> tuple[bytes, Receive]:
    """The body of a request, empty if it is too long, and what to read the same messages from once more."""
    messages, size, more = [], 0, True
    while more and size <= BODY_MAX:
        message = await receive()
        messages.append(message)
        size += len(message.get("body", b""))
        more = message["type"] == "http.request" and bool(message.get("more_body", False))
    kept = list(reversed(messages))

    async def again() -> MutableMapping[str, Any]:
        return kept.pop() if kept else await receive()

    whole = not more and size <= BODY_MAX
    return (b"".join(message.get("body", b"") for message in messages) if whole else b""), again
