import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from math import inf
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.report.synthetic import grid, run
from tests.report.test_claims import table1

from ark.errors import ConfigError
from ark.report.answer import answer
from ark.report.curves import times_figure
from ark.report.page import Story, glued, warnings
from ark.report.runs import Runs, collect
from ark.report.style import svg
from ark.report.write import Folder

STORY = Story(
    title='<script>alert("file name")</script>',
    subtitle="made-up runs",
    facts=[("Workload", "<img src=x onerror=alert(1)>")],
    command="ark simulate --trace '<b>.jsonl' --out out",
    config={"note": "</pre><script>"},
)


class Strict(HTMLParser):
    """Collects tags and attributes, and checks that tags close in order."""

    VOID = frozenset({"meta", "img", "br", "line"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def parsed(path: Path) -> Strict:
    parser = Strict()
    parser.feed(path.read_text(encoding="utf-8"))
    assert parser.open == []
    return parser


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All that a small experiment of the paper's writes."""
    path = tmp_path_factory.mktemp("report") / "deep" / "out"
    out = Folder(path)
    results = list(grid(points=(5.0, 25.0), seeds=2))
    for result in results:
        out.take(result)
    out.finish(collect(results), Story("t", "s", [], "ark reproduce", {"seeds": 2}, table1()))
    return path


@pytest.mark.slow
def test_a_folder_has_all_that_the_design_names(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == [
        "config.json", "fig2_fct.png", "fig3_spines.png", "fig4_ttft.png",
        "flows", "report.html", "results.csv", "table1.json",
    ]  # fmt: skip
    flows = sorted(path.name for path in (folder / "flows").iterdir())
    assert len(flows) == 2 * 5  # the first seed of each load and scheme
    assert flows[0] == "ark-paper_qps25_seed0.csv"
    assert json.loads((folder / "table1.json").read_text())["rows"][0]["name"] == "hash"
    assert json.loads((folder / "config.json").read_text()) == {"seeds": 2}


@pytest.mark.slow
def test_the_page_needs_nothing_else_and_runs_nothing(folder: Path) -> None:
    page = parsed(folder / "report.html")
    tags = {tag for tag, _ in page.seen}
    assert not tags & {"script", "link", "iframe", "object", "embed"}
    sources = [attributes["src"] or "" for tag, attributes in page.seen if tag == "img"]
    assert len(sources) == 4
    assert all(source.startswith("data:image/svg+xml;base64,") for source in sources)
    assert all(attributes.get("alt") for tag, attributes in page.seen if tag == "img")
    text = (folder / "report.html").read_text()
    assert not re.search(r"url\(|@import|https?://", text)
    assert "held" in text


@pytest.mark.slow
def test_foreign_text_is_escaped_and_the_paper_left_out(tmp_path: Path) -> None:
    Folder(tmp_path).finish(collect(grid(points=(None,), seeds=1)), STORY)
    page = parsed(tmp_path / "report.html")
    assert "script" not in {tag for tag, _ in page.seen}
    assert all("onerror" not in attributes for _, attributes in page.seen)
    text = (tmp_path / "report.html").read_text()
    assert "&lt;script&gt;" in text
    assert "paper's claims" not in text
    assert "One seed" in text
    assert not (tmp_path / "table1.json").exists()


@pytest.mark.slow
def test_figures_are_the_same_from_the_same_numbers(one_point: Runs) -> None:
    first, second = (svg(times_figure(one_point, "fct")) for _ in range(2))
    assert first == second
    ET.fromstring(first)


def test_other_files_of_the_folder_stay(tmp_path: Path) -> None:
    mine = {name: tmp_path / name for name in ("notes.txt", "flows/mine.csv", "flows/ark_qps5_seed0.csv")}
    for path in mine.values():
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    Folder(tmp_path)
    assert all(path.read_text() == "mine" for path in mine.values())


def test_flow_tables_of_an_earlier_run_go(tmp_path: Path) -> None:
    out = Folder(tmp_path)
    out.take(run("ark", 5.0, 0))
    out.take(run("ark", 5.0, 1))
    (tmp_path / "flows" / "mine.csv").write_text("mine")
    for name in ("results.csv", "config.json"):
        (tmp_path / name).touch()
    Folder(tmp_path)
    assert [path.name for path in (tmp_path / "flows").iterdir()] == ["mine.csv"]


def test_a_file_can_not_be_the_folder(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(ConfigError, match="--out"):
        Folder(tmp_path / "out")


def test_warnings_name_overload_and_few_seeds() -> None:
    few = warnings(collect(grid(schemes=("ecmp",), points=(5.0,), seeds=3)))
    assert few == ["3 seeds: the confidence intervals are rough; --seeds 10 gives better ones."]
    assert warnings(collect(grid(schemes=("ecmp",), points=(5.0,), seeds=10))) == []


@pytest.mark.parametrize(
    ("point", "load", "said"),
    [
        (
            40.0,
            1.318,
            "More is offered than the fabric carries at 40 requests/s (load 1.32): times there grow",
        ),
        (
            None,
            1.5,
            "More is offered than the fabric carries at the traffic's own times (load 1.50)",
        ),
        (None, inf, "All transfers start at once: times grow with their number, so only differences"),
    ],
)
def test_overload_is_said_with_its_point(point: float | None, load: float, said: str) -> None:
    runs = collect(replace(run("ecmp", point, seed), load=load) for seed in range(10))
    [text] = warnings(runs)
    assert text.startswith(said)
    assert "inf" not in answer(runs, point).sentences[0]


@pytest.mark.parametrize(
    ("text", "glue"), [("57 % of 1.5 s", "57\xa0% of 1.5\xa0s"), ("10 seeds", "10 seeds")]
)
def test_numbers_stay_with_their_units(text: str, glue: str) -> None:
    assert glued(text) == glue
