"""The examples that show our own formats are read as they say."""

from pathlib import Path

import pytest

from ark.workload import kv_model, load_requests

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_requests() -> None:
    requests = load_requests(EXAMPLES / "requests.csv")
    assert len(requests) == 8
    assert requests.prefix_tokens.tolist() == [0, 512, 512, 512, 0, 0, 0, 6656]


@pytest.mark.parametrize(
    ("name", "tokens", "size_bytes"),
    [
        ("my-llama-instruct", 1000, 1000 * 32 * 2 * 8 * 128),
        ("my-hybrid", 2000, 2 * (2 * 4 * 256 * (8 * 2000 + 40 * 1024) + 4 * 576 * 2000) + 4 * 4 * 524_288),
    ],
)
def test_models(name: str, tokens: int, size_bytes: int) -> None:
    assert kv_model(name, file=EXAMPLES / "models.toml").kv_bytes(tokens) == size_bytes
