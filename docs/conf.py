"""The documentation site: Sphinx with MyST-NB and furo. `make docs` builds it into docs/_build, offline.

The pages are plain Markdown, so that they read the same on a forge and in an editor. Two things happen here: the pages
of docs/lectures/ are run as notebooks, and the reference of commands and code is written from the package itself.
"""

import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent))

from docs.site.pages import as_notebook  # noqa: E402
from docs.site.reference import write_reference  # noqa: E402

project = "regard"
copyright = "the authors of regard, Apache-2.0"
extensions = ["myst_nb"]
exclude_patterns = ["_build", "site", "Thumbs.db"]
root_doc = "index"
source_suffix = {".md": "myst-nb"}

html_theme = "furo"
html_title = "regard"
html_static_path = ["site/static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
pygments_style = "default"
smartquotes = False  # two hyphens are an option of a command
# One accent a role, as in the figures: query blue, key orange, value green.
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f5fa8", "color-brand-content": "#1f5fa8"},
    "dark_css_variables": {"color-brand-primary": "#7fb2ea", "color-brand-content": "#7fb2ea"},
}

myst_heading_anchors = 3
myst_enable_extensions = ["html_image"]  # <img> with a width: the picture is copied, as of ![]()
myst_links_external_new_tab = False
# Links such as ../README.md and ../src/… leave the site: they are links of the repository, and tests/docs holds them.
suppress_warnings = ["myst.xref_missing", "misc.highlighting_failure"]

nb_execution_mode = "cache"  # a block is run again when its page has changed
nb_execution_cache_path = str(DOCS / "_build" / "executed")
nb_execution_in_temp = True
nb_execution_timeout = 900
nb_execution_raise_on_error = True
nb_merge_streams = True
nb_ipywidgets_js: dict[str, Any] = {}  # they would be loaded from the network


def setup(app: Any) -> None:
    write_reference(DOCS / "reference")
    app.connect("source-read", _read)


def _read(app: Any, name: str, source: list[str]) -> None:
    """Run the python blocks of a lecture; the outputs on the page give way to the real ones."""
    if name.startswith("lectures/"):
        source[0] = as_notebook(source[0])
