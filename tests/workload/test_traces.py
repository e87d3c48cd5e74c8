"""Traces: each known form, how it is recognized, and the messages about what is wrong."""

from pathlib import Path

import numpy as np
import pytest
from tests.shared_data import shared_data

from ark.errors import ConfigError
from ark.workload import FORMATS, load_requests

ARK = "arrived_s,prompt_tokens,output_tokens,prefix_tokens\n0.5,100,7,20\n1.5,200,8,\n"
AZURE = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    "2023-11-16 18:17:03.9799600,4808,10\n"
    "2023-11-16 18:17:04.0319600,3180,8\n"
)
AZURE_2024 = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    "2024-05-10 00:00:00.009930+00:00,2162,5\n"
    "2024-05-10T00:00:01.009930Z,2399,6\n"
)
VIDUR = "arrived_at,num_prefill_tokens,num_decode_tokens\n0.0,4808,10\n0.052,3180,8\n"
BURST = (
    "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    "5,ChatGPT,472,18,490,Conversation log\n"
    "45,ChatGPT,1087,0,1087,Conversation log\n"
    "118,GPT-4,417,276,693,API log\n"
)
BURST_NEW = (
    "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    "0.1,9c,1.5,ChatGPT,472,18,490,Conversation log\n"
    "0.2,9d,0.5,ChatGPT,10,1,11,Conversation log\n"
)
MOONCAKE = (
    '{"timestamp": 0, "input_length": 1300, "output_length": 500, "hash_ids": [0, 1, 2]}\n'
    '{"timestamp": 3000, "input_length": 1100, "output_length": 7, "hash_ids": [0, 1, 3], "extra": 1}\n'
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "trace"


def faults_of(text: str | bytes, file: Path, form: str | None = None) -> list[str]:
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(ConfigError) as raised:
        load_requests(file, format=form)
    return [line.removeprefix(str(file)) for line in str(raised.value).split("\n")]


@pytest.mark.parametrize("sniffed", [True, False])
@pytest.mark.parametrize(
    ("text", "form", "times", "prompts", "outputs"),
    [
        (ARK, "ark", [0.5, 1.5], [100, 200], [7, 8]),
        (AZURE, "azure", [0.0, 0.052], [4808, 3180], [10, 8]),
        (AZURE_2024, "azure", [0.0, 1.0], [2162, 2399], [5, 6]),
        (VIDUR, "vidur", [0.0, 0.052], [4808, 3180], [10, 8]),
        (BURST, "burstgpt", [5.0, 118.0], [472, 417], [18, 276]),
        (BURST_NEW, "burstgpt", [0.1, 0.2], [472, 10], [18, 1]),
        (MOONCAKE, "mooncake", [0.0, 3.0], [1300, 1100], [500, 7]),
    ],
)
def test_each_form(
    text: str,
    form: str,
    times: list[float],
    prompts: list[int],
    outputs: list[int],
    sniffed: bool,
    file: Path,
) -> None:
    for variant in (
        text,
        text.rstrip("\n"),
        text.replace("\n", "\r\n"),
        "\ufeff" + text,
        text.replace("\n", "\r"),
    ):
        file.write_bytes(variant.encode())
        requests = load_requests(file, format=None if sniffed else form)
        np.testing.assert_allclose(requests.arrived_s, times, atol=1e-6)
        assert requests.prompt_tokens.tolist() == prompts
        assert requests.output_tokens.tolist() == outputs
        assert requests.origin == f"trace ({form} trace)"
    assert form in FORMATS


def test_failed_requests_are_left_out_and_counted(file: Path) -> None:
    file.write_text(BURST, encoding="utf-8")
    assert load_requests(file).notes == ("1 of 3 requests failed (0 response tokens) and are left out",)
    only = BURST.split("\n")
    assert faults_of(f"{only[0]}\n{only[2]}\n", file) == [
        ": has no request that was answered: all have 0 request or response tokens"
    ]


def test_prefixes_of_our_own_form_count(file: Path) -> None:
    file.write_text(ARK, encoding="utf-8")
    assert load_requests(file).prefix_tokens.tolist() == [20, 0]
    assert faults_of(ARK + "2,100,1,100\n3,5,1,9\n", file) == [
        ':4: prefix_tokens: "100" is not below the 100 tokens of the prompt',
        ':5: prefix_tokens: "9" is not below the 5 tokens of the prompt',
    ]


def test_rows_out_of_order_are_sorted_and_that_is_said(file: Path) -> None:
    file.write_text(VIDUR + "0.01,7,7\n", encoding="utf-8")
    requests = load_requests(file)
    assert requests.prompt_tokens.tolist() == [4808, 7, 3180]
    assert requests.notes == ("1 rows stood before an earlier one; all were sorted by time of arrival",)


def test_only_the_first_ones(file: Path) -> None:
    for text in (VIDUR, MOONCAKE):
        file.write_text(text, encoding="utf-8")
        assert len(load_requests(file, limit=1)) == 1
        assert len(load_requests(file, limit=5)) == 2
    # What comes after them is not read at all.
    file.write_text(VIDUR + "nonsense\n" * 5, encoding="utf-8")
    assert len(load_requests(file, limit=2)) == 2


def test_rates_and_time_scales(file: Path) -> None:
    file.write_text(VIDUR, encoding="utf-8")
    assert load_requests(file).qps == pytest.approx(1 / 0.052)
    assert load_requests(file, qps=4.0).qps == pytest.approx(4)
    assert load_requests(file, time_scale=0.5).qps == pytest.approx(2 / 0.052)
    with pytest.raises(ConfigError, match="exclude each other"):
        load_requests(file, qps=4.0, time_scale=2.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", ": is empty; expected a trace of requests"),
        (b"\xef\xbb\xbf\n", ": is empty; expected a trace of requests"),
        (b"  <!DOCTYPE html>\n<html>", ": is a web page (it starts with <), not a trace of requests"),
        (
            b"\x1f\x8b\x08\x00",
            ": is a gzip file, not a trace of requests; unpack or convert it to text first",
        ),
        (b"PK\x03\x04", ": is a zip file"),
        (b"PAR1\x15", ": is a Parquet file"),
        (b"\xff\xfea\0", ": is UTF-16 text; save it as UTF-8"),
        (b"arrived_at,\0", ": is a binary file; expected a trace of requests"),
        (b"a,b\n1,\xff\n", ":2: byte 0xff is not UTF-8 text; save the file as UTF-8"),
        (b"version https://git-lfs.github.com/spec/v1\n", ": is a Git LFS pointer"),
        (b'[{"timestamp": 0}]', ": is one JSON array; write one object a line, without the brackets"),
        (
            b"id,src,dst,size_bytes,start_ns\n",
            ':1: "id,src,dst,size_bytes,start_ns" is no header of a known trace',
        ),
        (
            b"arrived_s,prompt_tokens\n1,2\n",
            ':1: has no column output_tokens; the columns are "arrived_s,prompt',
        ),
        (b"arrived_at\tnum_prefill_tokens\n", ":1: columns are separated by tabs; use commas"),
        (b"just some words\n", ':1: "just some words" is no header of a known trace'),
    ],
)
def test_files_that_are_no_traces(text: bytes, message: str, file: Path) -> None:
    faults = faults_of(text, file)
    assert len(faults) == 1
    assert faults[0].startswith(message)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path, message in (
        (tmp_path / "nowhere", "cannot be read: No such file or directory"),
        (tmp_path, "cannot be read: Is a directory"),
        (Path("a\0b"), "is not a file name"),
    ):
        with pytest.raises(ConfigError, match=message):
            load_requests(path)


def test_all_faults_of_a_csv_come_at_once(file: Path) -> None:
    rows = "-1,5,5\nnan,5,5\n1e30,5,5\n0,0,5\n0,5,-5\n0,999999999,5\n0,x,y\n0,1_0,5\n\n0,5\n"
    assert faults_of("arrived_at,num_prefill_tokens,num_decode_tokens\n" + rows, file) == [
        ':2: arrived_at: "-1" is out of range; allowed are 0 to 1e+09',
        ':3: arrived_at: "nan" is not a number; allowed are 0 to 1e+09',
        ':4: arrived_at: "1e30" is out of range; allowed are 0 to 1e+09',
        ':5: num_prefill_tokens: "0" is out of range; allowed are 1 to 100000000',
        ':6: num_decode_tokens: "-5" is out of range; allowed are 0 to 100000000',
        ':7: num_prefill_tokens: "999999999" is out of range; allowed are 1 to 100000000',
        ':8: num_prefill_tokens: "x" is not a whole number; allowed are 1 to 100000000',
        ':8: num_decode_tokens: "y" is not a whole number; allowed are 0 to 100000000',
        ':9: num_prefill_tokens: "1_0" is not a whole number; allowed are 1 to 100000000',
        ':11: "0,5" has 2 cells, the header 3',
    ]


@pytest.mark.parametrize(
    "cell", ["2023-02-31 00:00:00", "1000-01-01 00:00:00", "yesterday", "2023-11-16", "17"]
)
def test_times_of_day_that_are_none(cell: str, file: Path) -> None:
    allowed = "a time from 1970 to 2199; write it like 2023-11-16 18:17:03.979 (UTC)"
    assert faults_of(AZURE + f"{cell},1,1\n", file) == [f':4: TIMESTAMP: "{cell}" is not {allowed}']


BAD_TIME = (
    r':2: "{\"timestamp\": -1, \"input_length\": 1, \"output_length\": 1}": '
    "Expected `float` >= 0.0 - at `$.timestamp`"
)


def test_all_faults_of_json_lines_come_at_once(file: Path) -> None:
    text = (
        '{"timestamp": 0, "input_length": 1300, "output_length": 1, "hash_ids": [0, 1]}\n'
        '{"timestamp": -1, "input_length": 1, "output_length": 1}\n'
        '{"timestamp": 0, "input_length": 1.5, "output_length": 1}\n'
        '{"timestamp": 0, "output_length": 1}\n'
        "\n"
        '{"timestamp": NaN}\n'
        "arrived,1,2\n" + "[" * 100_000 + "\n"
    )
    faults = faults_of(text, file)
    assert faults[:2] == [
        ":1: hash_ids: 2 hashes for 1300 tokens; one for every 512 tokens makes 3",
        BAD_TIME,
    ]
    assert [fault.split(":")[1] for fault in faults] == ["1", "2", "3", "4", "6", "7", "8"]


def test_formats_that_are_none_are_refused(file: Path) -> None:
    file.write_text(VIDUR, encoding="utf-8")
    with pytest.raises(ConfigError, match='unknown trace format "vidr"; did you mean "vidur"'):
        load_requests(file, format="vidr")
    with pytest.raises(ConfigError, match="0 requests are not allowed"):
        load_requests(file, limit=0)
    with pytest.raises(ConfigError, match="is a vidur trace, which has no block hashes"):
        load_requests(file, prefix_reuse=True)
    assert faults_of(VIDUR, file, "azure")[0].startswith(":1: has no column TIMESTAMP; the columns are")
    assert len(faults_of(VIDUR, file, "mooncake")) == 3


@pytest.mark.parametrize(
    ("name", "form", "rows", "qps"),
    [
        ("AzureLLMInferenceTrace_code.csv", "azure", 8819, 2.567),
        ("AzureLLMInferenceTrace_conv.csv", "azure", 19366, 5.530),
        ("splitwise_code.csv", "vidur", 8819, 2.567),
    ],
)
def test_public_csv_traces(name: str, form: str, rows: int, qps: float) -> None:
    requests = load_requests(shared_data(f"traces/{name}"))
    assert len(requests) == rows
    assert requests.qps == pytest.approx(qps, rel=1e-3)
    assert form in requests.origin
    assert requests.notes == ()


def test_vidurs_copy_of_the_azure_trace_is_the_same() -> None:
    azure = load_requests(shared_data("traces/AzureLLMInferenceTrace_code.csv"))
    vidur = load_requests(shared_data("traces/splitwise_code.csv"))
    np.testing.assert_array_equal(azure.prompt_tokens, vidur.prompt_tokens)
    np.testing.assert_allclose(azure.arrived_s, vidur.arrived_s, atol=2e-6)
