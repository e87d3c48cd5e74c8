"""The client for asyncio against a real agent."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.agent.agents import write_cluster
from tests.agent.cohort import PATIENCE_S, Cohort, cohort

from ark.client import AsyncClient
from ark.errors import AgentUnavailable

TB = 10**12


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cohort]:
    folder = tmp_path_factory.mktemp("three")
    write_cluster(folder)
    with cohort(folder, 3, more='[policy]\nhold = "0"\nmin_bytes = "1 MB"\n') as made:
        yield made


def test_transfers_and_lanes(three: Cohort) -> None:
    async def work() -> None:
        client = AsyncClient(three.folder / "h0.sock", timeout_s=PATIENCE_S)
        async with client.transfer("h2", TB, dport=4791) as transfer, client.lanes("h2", 4791) as lanes:
            assert transfer.path is not None
            assert lanes[transfer.path].source_port != transfer.source_port
            assert await transfer.move(TB // 2) is False
        async with client.transfer("h2", TB, dport=4791, ahead=True) as transfer:
            await transfer.start()
            assert transfer.kind == "steered"
        async with asyncio.timeout(PATIENCE_S):
            summary = await client.status()
        assert summary["host"] == "h0"
        with pytest.raises(AgentUnavailable, match="no table 'nonsense'"):
            await client.status("nonsense")
        await client.close()

    asyncio.run(work())
    three.until(lambda: not three["h0"].service.transfers)


def test_a_transfer_that_another_task_ends_is_not_asked_about(
    three: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is known when ``move`` looks, and gone when ``move`` asks."""

    async def work() -> None:
        client = AsyncClient(three.folder / "h0.sock", timeout_s=PATIENCE_S)
        async with client.transfer("h2", TB, dport=4791) as transfer:
            pass
        monkeypatch.setattr(client.session, "knows", lambda _: True)
        assert await transfer.move(1) is False
        await transfer.start()
        await client.close()

    asyncio.run(work())


def test_many_at_once_share_a_connection(three: Cohort) -> None:
    async def one(client: AsyncClient) -> int | None:
        async with client.transfer("h2", TB, dport=4791) as transfer:
            return transfer.path

    async def work() -> list[int | None]:
        client = AsyncClient(three.folder / "h0.sock", timeout_s=PATIENCE_S)
        found = await asyncio.gather(*(one(client) for _ in range(100)))
        await client.close()
        return found

    assert set(asyncio.run(work())) == {0, 1, 2, 3}
    three.until(lambda: not three["h0"].service.transfers)


def test_no_agent_is_no_preference(tmp_path: Path) -> None:
    async def work() -> None:
        client = AsyncClient(tmp_path / "none.sock")
        async with client.transfer("h2", TB, dport=4791) as transfer:
            assert transfer.path is None
            assert await transfer.move(1) is False
        with pytest.raises(AgentUnavailable):
            await client.status()
        await client.close()

    asyncio.run(work())


@pytest.mark.slow
def test_a_running_transfer_survives_the_agents_restart(three: Cohort) -> None:
    async def work() -> None:
        client = AsyncClient(three.folder / "h1.sock", timeout_s=PATIENCE_S)
        async with client.transfer("h2", TB, dport=4791) as transfer:
            await asyncio.to_thread(three.stop, "h1")
            await asyncio.to_thread(three.boot, "h1")
            await asyncio.to_thread(three.until, lambda: len(three.rows("h1")) == 1)
            assert [row.paths for row in three.rows("h1")] == [(transfer.path,)]
        await client.close()

    asyncio.run(work())
    three.until(lambda: not three.rows("h1"))
