"""Each engine's newest release is one that the adapters know; if not, read it, then name it there."""

import pytest
from tests.contracts.wheels import Wheel

from ark.integrations.versions import complaint


@pytest.mark.parametrize(
    ("fixture", "engine"),
    [
        ("vllm", "vllm"),
        ("sglang", "sglang"),
        ("lmcache", "lmcache"),
        ("nixl", "nixl"),
        ("mooncake", "mooncake-transfer-engine"),
    ],
)
def test_the_newest_release_is_known(request: pytest.FixtureRequest, fixture: str, engine: str) -> None:
    wheel: Wheel = request.getfixturevalue(fixture)
    assert complaint(engine, str(wheel.version)) is None
