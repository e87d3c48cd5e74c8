"""Garbage in every reader: it gives valid data or a ConfigError that names the file, and nothing else."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ark.errors import ConfigError
from ark.workload import FORMATS, load_requests, read_flows
from ark.workload.kv import read_kv_models
from ark.workload.vidur_profile import LINEAR_OPERATIONS, read_profile

pytestmark = pytest.mark.slow

Reader = Callable[[Path], object]

HEADERS = [
    "arrived_s,prompt_tokens,output_tokens",
    "prefix_tokens,arrived_s,prompt_tokens,output_tokens",
    "TIMESTAMP,ContextTokens,GeneratedTokens",
    "arrived_at,num_prefill_tokens,num_decode_tokens",
    "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type",
    "id,src,dst,size_bytes,start_ns",
    "id,src,dst,size_bytes,start_ns,sport,dport,path,x",
]
NASTY = [
    "", "0", "1", "-1", "-0", "+5", " 7 ", "1.5", "4808.0", "1e3", "1e30", "1e308", "1e400", "nan", "NaN",
    "inf", "-inf", "9" * 30, "9" * 5000, "0x10", "1_000", "٣", "²", "\x1b[31m", '"', '""', '"a', '"a,b"',
    "a\0b", "a\x0bb", "\u2028", "true", "2023-11-16 18:17:03.97", "2023-02-31 00:00:00",
    "9999-99-99 99:99:99",
    "h0", "0;2>3", "1;",
    "9223372036854775807", "9223372036854775808", "18446744073709551616", "1e18", "e", "--1", "1-1", "=1+1",
]  # fmt: skip


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "input"


def survives(reader: Reader, file: Path, content: bytes) -> object | None:
    """What a reader makes of the content; None where it refuses it, which it must do in words."""
    file.write_bytes(content)
    try:
        return reader(file)
    except ConfigError as error:
        refusal = str(error)
    for line in refusal.split("\n"):
        assert line.startswith((str(file), "... and"))
        assert line.isprintable()
        assert len(line) < 1000
    return None


def check_trace(file: Path, content: bytes, form: str | None = None) -> None:
    for jitter in (False, True):
        requests = survives(partial(load_requests, format=form, jitter=jitter), file, content)
        if requests is not None:
            assert isinstance(requests, type(load_requests(file, format=form)))
            assert len(requests) > 0
            assert bool(np.isfinite(requests.arrived_s).all())
            assert requests.prompt_tokens.min() >= 1
            assert requests.new_tokens.min() >= 1


def check_flows(file: Path, content: bytes) -> None:
    flows = survives(read_flows, file, content)
    if flows is not None:
        assert isinstance(flows, type(read_flows(file)))
        assert flows.size_bytes.min() >= 1
        assert len(set(flows.id)) == len(flows) > 0


@given(content=st.binary(max_size=300), form=st.none() | st.sampled_from(FORMATS))
@example(content=b'"', form=None)
@example(content=b",,,\n,,,", form="vidur")
@example(content=b"\xef\xbb\xbf{", form=None)
def test_bytes(content: bytes, form: str | None, scratch: Path) -> None:
    check_trace(scratch, content, form)
    check_flows(scratch, content)
    survives(read_kv_models, scratch, content)


rows = st.lists(
    st.lists(st.sampled_from(NASTY) | st.text(max_size=8), min_size=2, max_size=8).map(",".join), max_size=6
)


@given(header=st.sampled_from(HEADERS), rows=rows, end=st.sampled_from(["\n", "\r\n", "\r", "\n\n"]))
def test_tables_of_odd_cells(header: str, rows: list[str], end: str, scratch: Path) -> None:
    content = end.join([header, *rows]).encode("utf-8", "surrogatepass")
    check_trace(scratch, content)
    check_flows(scratch, content)


@given(
    header=st.sampled_from(HEADERS),
    data=st.data(),
    count=st.integers(1, 4),
    valid=st.sampled_from(["1", "2", "3.0", "40000", "2023-11-16 18:17:03"]),
)
def test_tables_of_the_right_width(
    header: str, data: st.DataObject, count: int, valid: str, scratch: Path
) -> None:
    width = header.count(",") + 1
    cell = st.just(valid) | st.sampled_from([cell for cell in NASTY if "," not in cell])
    lines = [",".join(data.draw(st.lists(cell, min_size=width, max_size=width))) for _ in range(count)]
    content = "\n".join([header, *lines]).encode()
    check_trace(scratch, content)
    check_flows(scratch, content)


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


@given(
    row=st.fixed_dictionaries(
        {
            "timestamp": st.integers(0, 10**7),
            "input_length": st.integers(1, 2000),
            "output_length": st.integers(0, 9),
        },
        optional={"hash_ids": st.lists(st.integers(0, 5) | st.text(max_size=3), max_size=4)},
    ),
    field=st.sampled_from(["timestamp", "input_length", "output_length", "hash_ids", "x"]),
    value=anything,
    spoil=st.booleans(),
    reuse=st.booleans(),
)
def test_json_lines_of_odd_fields(
    row: dict[str, object], field: str, value: object, spoil: bool, reuse: bool, scratch: Path
) -> None:
    good = json.dumps(row)
    bad = json.dumps({**row, field: value} if spoil else row)
    content = f"{good}\n{bad}\n".encode("utf-8", "surrogatepass")
    check_trace(scratch, content)
    requests = survives(lambda path: load_requests(path, prefix_reuse=reuse), scratch, content)
    if requests is not None:
        assert isinstance(requests, type(load_requests(scratch)))
        assert len(requests) == 2


@given(
    cut=st.integers(0, 400),
    drop=st.integers(0, 20),
    insert=st.binary(max_size=6),
    form=st.sampled_from([0, 1, 2]),
)
def test_damaged_files(cut: int, drop: int, insert: bytes, form: int, scratch: Path) -> None:
    whole = [
        b"id,src,dst,size_bytes,start_ns,sport,path\n"
        + b"".join(b"f%d,h0,h8,100,%d,5,1\n" % (i, i) for i in range(20)),
        b"TIMESTAMP,ContextTokens,GeneratedTokens\n" + b"2023-11-16 18:17:03.9799600,48,10\n" * 10,
        b'{"timestamp": 3, "input_length": 513, "output_length": 5, "hash_ids": [0, 1]}\n' * 5,
    ][form]
    content = whole[:cut] + insert + whole[cut + drop :]
    check_trace(scratch, content)
    check_flows(scratch, content)


@given(value=anything)
def test_model_files_of_odd_fields(value: object, scratch: Path) -> None:
    layers = {"count": 2, "kv_heads": 3, "head_dim": 4}
    for spoiled in (
        value,
        {"model": value},
        {"model": [{"name": "x", "layers": value}]},
        {"model": [{"name": "x", "layers": [{**layers, "window": value}]}]},
    ):
        survives(read_kv_models, scratch, msgspec.json.encode(spoiled))


MLP = ",".join([*(f"time_stats.{name}.median" for name in LINEAR_OPERATIONS), "num_tokens"])


@settings(max_examples=30)
@given(
    cells=st.lists(
        st.sampled_from(["1", "2.5", *(c for c in NASTY if "," not in c)]), min_size=11, max_size=11
    )
)
def test_profiles_of_odd_cells(cells: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.getbasetemp() / "profile"
    folder.mkdir(exist_ok=True)
    (folder / "mlp.csv").write_text(
        f"{MLP},num_tensor_parallel_workers\n{','.join(cells)}\n", encoding="utf-8"
    )
    with pytest.raises(ConfigError) as raised:  # attention.csv is missing, if nothing else is wrong
        read_profile(folder)
    assert str(raised.value).startswith(str(folder))
