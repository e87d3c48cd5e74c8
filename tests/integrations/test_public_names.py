import subprocess
import sys

import pytest

import ark.integrations


@pytest.mark.parametrize("name", ark.integrations.__all__)
def test_what_a_program_calls_is_there(name: str) -> None:
    assert callable(getattr(ark.integrations, name))


def test_nothing_else_is_there() -> None:
    with pytest.raises(AttributeError, match=r"'ark\.integrations' has no attribute 'steering_of_ucx'"):
        _ = ark.integrations.steering_of_ucx


def test_nothing_is_loaded_before_it_is_used() -> None:
    code = "import sys, ark.integrations; print(*{'msgspec', 'ark.client'} & set(sys.modules))"
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert said == "\n"
