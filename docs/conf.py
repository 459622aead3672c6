"""Sphinx's settings for the site: ``make docs`` builds it from the pages as they are on disk.

The source folder is the root of the repository, so that links between pages work on the site as they do in a
repository browser. Nothing is fetched: formulas are drawn while the site is built, search runs in the browser, and
every page works from ``file://``. Warnings are errors.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

import advmdp  # noqa: E402

project = "advmdp"
author = "The advmdp authors"
copyright = author
version = release = advmdp.__version__

extensions = [
    "myst_parser",
    "sphinx_copybutton",
    "tools.site.math_svg",
    "tools.site.public_names",
    "tools.site.notebooks",
]
root_doc = "docs/index"
include_patterns = ["docs/*.md", "docs/*/*.md", "docs/notebooks/*.nb.py", "C*.md", "SECURITY.md"]
exclude_patterns = ["build", "dist", "src", "tests", "tools", "benchmarks", "examples", ".*", "**/__pycache__"]
source_suffix = {".md": "markdown", ".nb.py": "markdown"}  # notebooks become Markdown before they are parsed
nitpicky = True
toc_object_entries_show_parents = "hide"  # full names do not fit the column

myst_enable_extensions = ["dollarmath", "colon_fence", "attrs_block", "attrs_inline", "deflist"]
myst_heading_anchors = 4
myst_all_links_external = False

highlight_language = "none"
html_math_renderer = "svg"
html_theme = "furo"
html_title = "advmdp"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = False  # summaries would be fetched, which browsers refuse from the disk
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
html_permalinks_icon = "#"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def setup(app):
    """Put an index.html at the top of the site, which leads to the first page."""

    def front_door(app, error):
        if error is None:
            page = '<!doctype html><meta charset="utf-8"><title>advmdp</title><meta http-equiv="refresh" '
            Path(app.outdir, "index.html").write_text(f'{page}content="0; url=docs/index.html">\n')

    app.connect("build-finished", front_door)
