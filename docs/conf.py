"""How Sphinx builds these pages: ``make docs``."""

from ark import __version__

project = "ARK"
release = __version__
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"ARK {__version__}"
exclude_patterns = ["_build"]
