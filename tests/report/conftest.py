"""Runs with made-up numbers, made once: nothing in reports changes them."""

import pytest
from tests.report.synthetic import grid

from ark.report.runs import Runs, collect


@pytest.fixture(scope="session")
def sweep() -> Runs:
    return collect(grid())


@pytest.fixture(scope="session")
def one_point() -> Runs:
    return collect(grid(points=(None,)))
