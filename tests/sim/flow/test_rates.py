"""The compiled water filling against its laws and against the plain one."""

from dataclasses import dataclass
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sim.flow.water_filling import fair_rates_plain

from ark.sim.flow.arrays import LIVE
from ark.sim.flow.network import FluidNetwork


@dataclass
class Sharing:
    link_rate: list[float]
    paths: list[list[int]]
    weights: list[float]

    def rates(self) -> list[float]:
        network = FluidNetwork(np.array(self.link_rate), stripes_max=1)
        for path, weight in zip(self.paths, self.weights, strict=True):
            network.add_flow([path], 10**9, weight=weight)
        network.run(1e-6)
        live = network.arguments.counts[LIVE]
        rates = dict(
            zip(
                network.arguments.stripes["flow"][:live],
                network.arguments.stripes["rate"][:live],
                strict=True,
            )
        )
        return [float(rates[slot]) for slot in range(len(self.paths))]


@st.composite
def sharings(draw: st.DrawFn) -> Sharing:
    links = draw(st.integers(1, 12))
    rates = draw(st.lists(st.sampled_from([3.125, 12.5, 12.43, 50.0, 1e-3]), min_size=links, max_size=links))
    path = st.lists(st.integers(0, links - 1), min_size=1, max_size=6, unique=True)
    paths = draw(st.lists(path, min_size=1, max_size=80))
    weight = st.sampled_from([1.0, 1.0, 0.5, 1 / 3, 0.25])
    return Sharing(rates, paths, draw(st.lists(weight, min_size=len(paths), max_size=len(paths))))


@pytest.mark.slow
@given(sharings())
@settings(deadline=None)
def test_equals_the_plain_water_filling(sharing: Sharing) -> None:
    assert sharing.rates() == pytest.approx(
        fair_rates_plain(sharing.link_rate, sharing.paths, sharing.weights), rel=1e-9
    )


@pytest.mark.slow
@given(sharings())
@settings(deadline=None)
def test_no_link_above_its_rate_and_each_stripe_has_a_bottleneck(sharing: Sharing) -> None:
    """The bottleneck condition: a full link on which nobody gets more for its weight. It defines max-min."""
    rates = sharing.rates()
    levels = [rate / weight for rate, weight in zip(rates, sharing.weights, strict=True)]
    crossing = [
        [i for i, path in enumerate(sharing.paths) if link in path] for link in range(len(sharing.link_rate))
    ]
    used = [sum(rates[i] for i in stripes) for stripes in crossing]
    for link, capacity in enumerate(sharing.link_rate):
        assert used[link] <= capacity * (1 + 1e-9)
    for i, path in enumerate(sharing.paths):
        assert any(
            used[link] >= sharing.link_rate[link] * (1 - 1e-9)
            and levels[i] >= max(levels[j] for j in crossing[link]) * (1 - 1e-9)
            for link in path
        )


@pytest.mark.slow
@given(sharings(), st.randoms())
@settings(deadline=None)
def test_the_order_of_stripes_changes_nothing(sharing: Sharing, random: Random) -> None:
    order = list(range(len(sharing.paths)))
    random.shuffle(order)
    shuffled = Sharing(
        sharing.link_rate, [sharing.paths[i] for i in order], [sharing.weights[i] for i in order]
    )
    rates = sharing.rates()
    assert shuffled.rates() == pytest.approx([rates[i] for i in order], rel=1e-9)
