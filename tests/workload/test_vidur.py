"""Latency learned from a Vidur profile: close to the profile, monotone, and never flat beyond it."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.shared_data import shared_data

from ark.errors import ConfigError
from ark.workload import latency_model
from ark.workload.vidur import VidurLatency
from ark.workload.vidur_profile import LINEAR_OPERATIONS

pytestmark = pytest.mark.slow  # loading scikit-learn alone takes seconds

PROFILE = "latency/h100_synth/meta-llama/Meta-Llama-3-8B"

# Sums of Vidur's random forests over this profile in milliseconds (latency_fits.json, h100_sxm, one worker).
WHOLE_MS = {1000: 21.54, 4000: 90.37, 13300: 366.18, 32000: 1088.65}
CHUNKS_OF_512_MS = {1000: 23.12, 4000: 97.27, 13300: 367.95, 32000: 1118.8}
DECODE_MS = {1000: 6.549, 13300: 7.166, 52000: 9.209}


def write_profile(folder: Path, *, flat: bool = False) -> Path:
    """A profile of 2 layers whose operations take 1 ms + size/1000 each, or 1 ms whatever the size."""
    pytest.importorskip("sklearn")
    folder.mkdir(parents=True)

    def time_ms(size: float) -> float:
        return 1.0 if flat else 1.0 + size / 1000

    names = [f"time_stats.{name}.median" for name in LINEAR_OPERATIONS]
    lines = [",".join([*names, "num_tokens", "num_tensor_parallel_workers"])]
    sizes = range(8, 1025, 8)
    lines += [",".join([str(time_ms(size))] * len(names) + [str(size), "1"]) for size in sizes]
    (folder / "mlp.csv").write_text("\n".join(lines), encoding="utf-8")
    names = [f"time_stats.{name}.median" for name in ("attn_prefill", "attn_decode", "attn_kv_cache_save")]
    sizes_of_row = "batch_size,prefill_chunk_size,kv_cache_size,is_prefill,num_tensor_parallel_workers"
    lines = [",".join([*names, sizes_of_row])]
    lines += [f"{time_ms(size**2 / 1000)},0,0,1,{size},0,True,1" for size in sizes]
    lines += [f"0,{time_ms(size)},0,1,0,{size},False,1" for size in range(64, 1025, 64)]
    (folder / "attention.csv").write_text("\n".join(lines), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def h100() -> VidurLatency:
    pytest.importorskip("sklearn")
    return VidurLatency(shared_data(PROFILE))


def test_sums_are_those_of_vidurs_own_forests(h100: VidurLatency) -> None:
    prefill_ms = h100.prefill_s(list(WHOLE_MS)) * 1e3
    np.testing.assert_allclose(prefill_ms, list(WHOLE_MS.values()), rtol=0.03)
    np.testing.assert_allclose(h100.decode1_s(list(DECODE_MS)) * 1e3, list(DECODE_MS.values()), rtol=0.005)


def test_chunks_are_summed() -> None:
    pytest.importorskip("sklearn")
    model = VidurLatency(shared_data(PROFILE), chunk_tokens=512)
    prefill_ms = model.prefill_s(list(CHUNKS_OF_512_MS)) * 1e3
    np.testing.assert_allclose(prefill_ms, list(CHUNKS_OF_512_MS.values()), rtol=0.01)
    times = model.prefill_s(np.arange(1, 3000, 7))
    assert bool(np.all(np.diff(times) >= 0))


def test_times_never_fall(h100: VidurLatency) -> None:
    lengths = np.arange(1, 150_000, 13)
    assert bool(np.all(np.diff(h100.prefill_s(lengths)) >= 0))
    assert bool(np.all(np.diff(h100.decode1_s(lengths)) >= 0))


def test_beyond_the_profile_times_go_on_as_they_rose(h100: VidurLatency) -> None:
    """The profile ends at 65,536 tokens; from there the time is a polynomial that meets it."""
    assert h100.prefill_s(65_544) == pytest.approx(h100.prefill_s(65_536), rel=0.01)
    doubled = h100.prefill_s(262_144) / h100.prefill_s(131_072)
    assert 3 < doubled < 4  # attention, quadratic, outweighs the rest
    contexts = h100.decode1_s([100_000, 200_000, 400_000])
    assert np.diff(contexts)[1] == pytest.approx(2 * np.diff(contexts)[0], rel=0.01)


def test_known_times_are_found_again(tmp_path: Path) -> None:
    model = VidurLatency(write_profile(tmp_path / "p"), layers=2)
    sizes = np.array([8.0, 512.0, 1000.0])
    linear = len(LINEAR_OPERATIONS) * (1 + sizes / 1000)
    np.testing.assert_allclose(model.prefill_s(sizes) * 1e3, 2 * (linear + 1 + sizes**2 / 1e6), rtol=0.01)
    far = 20_000.0
    expected = 2 * (len(LINEAR_OPERATIONS) * (1 + far / 1000) + 1 + far**2 / 1e6)
    assert model.prefill_s(far) * 1e3 == pytest.approx(expected, rel=0.01)
    assert model.prefill_s(np.array([[8, 16], [24, 32]])).shape == (2, 2)


def test_a_flat_profile_does_not_stay_flat_for_ever(tmp_path: Path) -> None:
    model = VidurLatency(write_profile(tmp_path / "p", flat=True), layers=2)
    inside, end, beyond = model.prefill_s([100, 1024, 10_240])
    assert inside == pytest.approx(end)
    assert beyond == pytest.approx(10 * end)


def test_the_folders_name_tells_the_layers(tmp_path: Path) -> None:
    folder = write_profile(tmp_path / "Meta-Llama-3-8B")
    named = latency_model(f"vidur:{folder}")
    assert named.prefill_s(100) == pytest.approx(16 * VidurLatency(folder, layers=2).prefill_s(100))
    with pytest.raises(
        ConfigError, match="no known model is called nameless; name the folder after the model"
    ):
        VidurLatency(shutil.copytree(folder, tmp_path / "nameless"))


def test_profiles_that_do_not_work_are_refused(tmp_path: Path) -> None:
    folder = write_profile(tmp_path / "p")
    with pytest.raises(ConfigError, match="4 tokens a chunk are too few"):
        VidurLatency(folder, layers=2, chunk_tokens=4)
    mlp = folder / "mlp.csv"
    text = mlp.read_text(encoding="utf-8")
    mlp.write_text(text.replace(",1\n", ",2\n").removesuffix(",1") + ",2", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"mlp.csv: has no row of 1 worker"):
        VidurLatency(folder, layers=2)
    mlp.write_text(text, encoding="utf-8")
    attention = folder / "attention.csv"
    attention.write_text(
        attention.read_text(encoding="utf-8").replace("attn_decode", "decode"), encoding="utf-8"
    )
    with pytest.raises(ConfigError, match=r"attention.csv:1: has no column time_stats.attn_decode.median"):
        VidurLatency(folder, layers=2)
    attention.unlink()
    with pytest.raises(ConfigError, match=r"attention.csv: cannot be read: No such file"):
        VidurLatency(folder, layers=2)


def test_without_scikit_learn_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_profile(tmp_path / "p")
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(
        ConfigError, match=r"needs scikit-learn; install it with: pip install 'ark-kv\[vidur\]'"
    ):
        VidurLatency(folder, layers=2)
