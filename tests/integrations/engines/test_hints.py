"""Early hints: reserved before the prefill ends, begun with the answer, given back at its end; real agent."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.agent.cohort import PATIENCE_S
from tests.integrations.engines.watching import Watched

from ark.client.aio import AsyncClient
from ark.errors import ConfigError
from ark.integrations.hints import Expected, Hints, hinted, model_from
from ark.integrations.prefill_hint import BODY_MAX, PrefillHint, prompt_tokens
from ark.integrations.sessions import PeerNames
from ark.kv import by_name, kv_models

MODEL = by_name(kv_models())["llama-3-8b"]
TOKEN = 131_072
PEERS = PeerNames({"10.9.0.2": "h2"})


def run_hinted(watched: Watched, work: Callable[[Hints], Coroutine[Any, Any, None]]) -> None:
    """Run something in an event loop with hints of that loop."""

    async def main() -> None:
        client = AsyncClient(watched.four.folder / "h0.sock", timeout_s=PATIENCE_S)
        try:
            await work(Hints(MODEL, client=client, peers=PEERS))
        finally:
            await client.close()

    asyncio.run(main())


def states(watched: Watched) -> list[str]:
    rows: Any = watched.client.status("reservations")["results"]
    return [row["state"] for row in rows if row["host"] == "h0"]


def test_an_expected_transfer_is_reserved_ahead_and_begins_when_told(watched: Watched) -> None:
    async def work(hints: Hints) -> None:
        async with hints.expected("10.9.0.2", 1000) as transfer:
            (reserved,) = watched.transfers()
            assert (reserved.target, reserved.size_bytes) == ("h2", 1000 * TOKEN)
            assert reserved.paths == (transfer.path,)
            assert states(watched) == ["pending"]
            await transfer.begin()
            await transfer.begin()
            assert states(watched) != ["pending"]

    run_hinted(watched, work)
    assert watched.settled() == []


def test_an_exception_gives_it_back(watched: Watched) -> None:
    async def work(hints: Hints) -> None:
        with pytest.raises(RuntimeError, match="prefill failed"):
            async with hints.expected("10.9.0.2", 1000):
                raise RuntimeError("prefill failed")
        watched.four.until(lambda: not watched.four["h0"].service.transfers)

    run_hinted(watched, work)


def test_no_host_or_no_tokens_give_no_hint(watched: Watched) -> None:
    async def work(hints: Hints) -> None:
        for decode, tokens in ((None, 1000), ("10.9.0.2", 0), ("", 10)):
            async with hints.expected(decode, tokens) as transfer:
                assert transfer.path is None
                await transfer.begin()
        assert watched.transfers() == []

    run_hinted(watched, work)


def test_an_absurd_size_is_said_and_stops_nothing(watched: Watched, caplog: pytest.LogCaptureFixture) -> None:
    async def work(hints: Hints) -> None:
        async with hints.expected("10.9.0.2", 10**12) as transfer:
            assert isinstance(transfer, Expected)

    run_hinted(watched, work)
    assert "no hint is given" in caplog.text


def test_without_an_agent_requests_go_on(tmp_path: Path) -> None:
    async def main() -> None:
        hints = Hints(MODEL, client=AsyncClient(tmp_path / "nobody.sock"), peers=PEERS)
        async with hints.expected("10.9.0.2", 1000) as transfer:
            await transfer.begin()
            assert transfer.path is None

    asyncio.run(main())


def test_a_dynamo_handler_is_announced(watched: Watched) -> None:
    async def generate(request: Any, context: Any) -> AsyncIterator[str]:
        assert states(watched) == ["pending"]
        yield "first"
        assert states(watched) != ["pending"]
        yield f"{context}"

    async def work(hints: Hints) -> None:
        announced = hinted(generate, hints, lambda request: request["decode"])
        request = {"token_ids": list(range(700)), "decode": "10.9.0.2"}
        assert [part async for part in announced(request, "context")] == ["first", "context"]
        watched.four.until(lambda: not watched.four["h0"].service.transfers)

    run_hinted(watched, work)


BODY = {"prompt": [1] * 800, "kv_transfer_params": {"do_remote_decode": True, "do_remote_prefill": False}}


async def serve(hints: Hints, body: bytes, app: Callable[..., Any], *, method: str = "POST") -> list[Any]:
    """One request through the middleware, its body in three messages."""
    third = len(body) // 3 + 1
    parts = [body[start : start + third] for start in range(0, 3 * third, third)]
    coming = [{"type": "http.request", "body": part, "more_body": part is not parts[-1]} for part in parts]
    answers: list[Any] = []

    async def receive() -> Any:
        return coming.pop(0) if coming else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        answers.append(message)

    scope = {"type": "http", "method": method, "client": ("10.9.0.2", 40_000)}
    await PrefillHint(app, hints)(scope, receive, send)
    return answers


async def whole_body(receive: Callable[[], Any]) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


def test_the_middleware_announces_a_prefill_request_of_a_decode_host(watched: Watched) -> None:
    text = msgspec.json.encode(BODY)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert await whole_body(receive) == text
        assert (await receive())["type"] == "http.disconnect"
        (reserved,) = watched.transfers()
        assert (reserved.target, reserved.size_bytes) == ("h2", 800 * TOKEN)
        await send({"type": "http.response.start"})
        assert states(watched) != ["pending"]
        await send({"type": "http.response.body"})

    async def work(hints: Hints) -> None:
        assert len(await serve(hints, text, app)) == 2
        watched.four.until(lambda: not watched.four["h0"].service.transfers)

    run_hinted(watched, work)


@pytest.mark.parametrize(("body", "method"), [(b"{}", "POST"), (b"", "GET"), (b"x" * (BODY_MAX + 9), "POST")])
def test_the_middleware_passes_everything_else_on(watched: Watched, body: bytes, method: str) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert await whole_body(receive) == body
        assert watched.transfers() == []

    async def work(hints: Hints) -> None:
        await serve(hints, body, app, method=method)

    run_hinted(watched, work)


def remote(**fields: Any) -> bytes:
    return msgspec.json.encode({"kv_transfer_params": {"do_remote_decode": True}} | fields)


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        (remote(prompt=[5, 6, 7]), 3),
        (remote(prompt=[[5, 6], [7]]), 3),
        (remote(prompt="x" * 41), 11),
        (remote(prompt=["x" * 4, "y" * 5]), 3),
        (remote(messages=[{"role": "user", "content": "x" * 100}]), 33),
        (remote(), 0),
        (remote(prompt=7), 0),
        (remote(prompt=[5])[:-1], 0),
        (msgspec.json.encode({"prompt": [5], "kv_transfer_params": {"do_remote_decode": False}}), 0),
        (msgspec.json.encode({"prompt": "do_remote_decode"}), 0),
        (b'{"do_remote_decode": 1}', 0),
        (b"\xff" + remote(prompt=[5]), 0),
        (b'"do_remote_decode"' + b"[" * 100_000, 0),
    ],
)
def test_tokens_of_a_prompt(body: bytes, tokens: int) -> None:
    assert prompt_tokens(body) == tokens


@pytest.mark.slow
@given(st.binary())
def test_any_body(body: bytes) -> None:
    assert prompt_tokens(body) == 0
    assert prompt_tokens(b'{"do_remote_decode":' + body) == 0


def test_the_model_of_the_hints() -> None:
    assert model_from({"ARK_KV_MODEL": "meta-llama/Llama-3-8B"}) == MODEL
    with pytest.raises(ConfigError, match=r'ARK_KV_MODEL: .*"ark models" lists'):
        model_from({})
