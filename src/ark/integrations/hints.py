"""Early hints: a request's prefill and decode host, and the length of its prompt, before the prefill ends.

Orchestrators (Dynamo, llm-d) know this when they dispatch a request, long before its KV cache is sent. A hint
reserves a path ahead of time, so that the other hosts keep off it. It says nothing to the engine: whose
transfers are steered asks again when they start, with exact bytes.

Give hints in that process of the prefill host which sees the request first: by ``PrefillHint`` in front of
vLLM's server, :func:`hinted` around the handler of a Dynamo prefill worker, or :class:`Hints`.
"""

import contextlib
import os
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final

from ark.client.aio import AsyncClient, AsyncTransfer
from ark.errors import ArkError, ConfigError, Fault
from ark.integrations.logs import log
from ark.integrations.sessions import PeerNames, peers_from
from ark.integrations.steering import ROCE_PORT
from ark.kv import KvModel, by_name, kv_models, plain_name

MODEL: Final = "ARK_KV_MODEL"
"""Environment variable: the name of a model of ``ark models``, whose KV bytes a token are counted."""


class Expected:
    """A transfer that has been announced; without an agent, nothing."""

    def __init__(self, transfer: AsyncTransfer | None = None) -> None:
        self._transfer = transfer
        self._begun = False

    @property
    def path(self) -> int | None:
        """The path reserved; None for no preference."""
        return None if self._transfer is None else self._transfer.path

    async def begin(self) -> None:
        """The prefill has ended and bytes flow; once is enough."""
        begun, self._begun = self._begun, True
        if self._transfer is not None and not begun:
            await self._transfer.start()


class Hints:
    """Announces transfers of one model, in one event loop.

    Parameters
    ----------
    model
        Whose KV cache is sent.
    client
        The agent's client in this loop; by default one that is made when first needed.
    peers
        The fabric's names of decode hosts; by default those of ``ARK_PEERS``.
    """

    def __init__(
        self,
        model: KvModel,
        *,
        client: AsyncClient | None = None,
        peers: PeerNames | None = None,
        dport: int = ROCE_PORT,
        proto: str = "udp",
    ) -> None:
        self.model = model
        self.dport = dport
        self.proto = proto
        self._client = client
        self._peers = peers_from() if peers is None else peers

    @contextlib.asynccontextmanager
    async def expected(self, decode: str | None, tokens: int) -> AsyncIterator[Expected]:
        """Reserve ahead, for the KV cache of ``tokens`` tokens to the host ``decode``, until the block's end.

        The agent gives the reservation up if its transfer does not ``begin`` within 30 s.
        """
        target = None if decode is None else self._peers.target(decode)
        if target is None or tokens <= 0:
            yield Expected()
            return
        if self._client is None:
            self._client = AsyncClient()
        size_bytes = self.model.prompt_bytes(tokens)
        try:
            transfer = self._client.transfer(
                target, size_bytes, dport=self.dport, proto=self.proto, ahead=True
            )
        except ArkError as error:
            log.warning("ark: %s; no hint is given", error)
            yield Expected()
            return
        async with transfer:
            yield Expected(transfer)


def hinted(
    generate: Callable[..., AsyncIterator[Any]],
    hints: Hints,
    decode_of: Callable[[Mapping[str, Any]], str | None],
) -> Callable[..., AsyncIterator[Any]]:
    """A Dynamo prefill handler's ``generate`` that announces the transfer of each request.

    Parameters
    ----------
    generate
        ``generate(request, context)``, bound to the handler; ``request["token_ids"]`` is the prompt.
    decode_of
        The decode host of a request, as the router chose it; None where it is not known.
    """

    async def announced(request: Mapping[str, Any], context: Any) -> AsyncIterator[Any]:
        tokens = len(request.get("token_ids") or ())
        async with hints.expected(decode_of(request), tokens) as transfer:
            async for part in generate(request, context):
                await transfer.begin()
                yield part

    return announced


def model_from(environment: Mapping[str, str] = os.environ) -> KvModel:
    """The model that ``ARK_KV_MODEL`` names.

    Raises
    ------
    ConfigError
        If it names none of the table's.
    """
    name = environment.get(MODEL, "")
    model = by_name(kv_models()).get(plain_name(name))
    if model is None:
        raise ConfigError(Fault(MODEL, f'{name[:80]!r}: give a name that "ark models" lists'))
    return model
