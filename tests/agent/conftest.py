from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.agent.agents import write_cluster
from tests.agent.cohort import Cohort, cohort


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cohort]:
    """Four agents, two on each of two leaves, without a hold; tests leave no transfer behind."""
    folder = tmp_path_factory.mktemp("four")
    write_cluster(folder)
    with cohort(folder, 4, more='[policy]\nhold = "0"\nmin_bytes = "1 MB"\n') as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files of a cluster: two leaves, four spines, two hosts a leaf."""
    write_cluster(tmp_path)
    return tmp_path
