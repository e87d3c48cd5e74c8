"""The KV arithmetic for one prompt: the same as for arrays, and without NumPy."""

import subprocess
import sys

import pytest

from ark.kv import KvModel, kv_models


@pytest.mark.parametrize("model", kv_models(), ids=lambda model: str(model.name))
def test_one_prompt_and_arrays_agree(model: KvModel) -> None:
    tokens = [0, 1, 17, 1000, 5000, 131_072]
    assert [model.prompt_bytes(count) for count in tokens] == model.kv_bytes(tokens).tolist()


def test_one_prompt_loads_no_numpy() -> None:
    code = "import sys, ark.kv; ark.kv.kv_models()[0].prompt_bytes(1000); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
