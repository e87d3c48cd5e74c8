from itertools import combinations

import pytest

from ark.report.looks import LOOKS, look
from ark.report.style import percent


def lightness(colour: str) -> float:
    """L* of CIE Lab, 0 black to 100 white: what is left of a colour on a grey print."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    luminance = sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    return float(116 * luminance ** (1 / 3) - 16)


def test_schemes_differ_in_marker_and_dashes_or_in_lightness() -> None:
    for one, other in combinations(LOOKS.values(), 2):
        assert one.marker != other.marker
        apart = abs(lightness(one.colour) - lightness(other.colour))
        assert one.dashes != other.dashes or apart > 20, f"{one.label} and {other.label} look alike in grey"


def test_lines_stand_out_from_white_paper() -> None:
    assert all(lightness(its.colour) < 65 for its in LOOKS.values())


def test_a_scheme_of_later_days_has_a_look() -> None:
    assert look("conga").label == "conga"
    assert look("conga").marker not in {its.marker for its in LOOKS.values()}


@pytest.mark.parametrize(
    ("share", "decimals", "text"),
    [(0.273, 1, "27.3 %"), (-0.02, 0, "−2 %"), (-0.0004, 0, "0 %"), (0.000025, 4, "0.0025 %")],
)
def test_percent(share: float, decimals: int, text: str) -> None:
    assert percent(share, decimals) == text
