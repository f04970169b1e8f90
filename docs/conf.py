"""The documentation site: `python -m sphinx -W docs site` builds it, with warnings as errors.

Sphinx, because the docstrings are numpydoc's and the readers come from NumPy, SciPy, scikit-learn and scanpy, whose sites are
made this way and look like this one (pydata-sphinx-theme). The pages are Markdown (MyST), so that they can be read in the
repository as well.
"""

from __future__ import annotations

import corecut

project = "corecut"
author = "the corecut developers"
release = version = corecut.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx-mathjax-offline",  # formulas without a network
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
highlight_language = "none"  # blocks of another language say so

myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_heading_anchors = 4

# One page per public name. Methods of the class itself, not those that every scikit-learn estimator inherits.
autosummary_generate = True
autosummary_imported_members = True
autodoc_typehints = "none"  # numpydoc's parameters say what they mean
numpydoc_show_class_members = False  # the template shows them in full

html_theme = "pydata_sphinx_theme"
html_title = "corecut"
html_static_path = ["_static"]
html_css_files = ["corecut.css"]
html_show_sourcelink = False
html_context = {"default_mode": "auto"}  # light or dark as the reader's system has it
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "secondary_sidebar_items": ["page-toc"],
}
# A page of the first level has no section to show beside it.
html_sidebars = {"index": [], "gallery": [], "faq": [], "comparison": [], "choosing-options": []}
copyright = "the corecut developers; MIT licence"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def show_blocks_as_they_are(app, what, name, *rest):
    """Make what a module's docstring sets apart by indentation, its formulas and file names, a block that is not folded."""
    if what != "module":
        return
    lines = rest[-1]
    shown: list[str] = []
    for line in lines:
        begins = line.startswith("    ") and shown and not shown[-1].strip()
        before = next((earlier for earlier in reversed(shown) if earlier.strip()), "")
        if begins and not before.startswith("    ") and not before.rstrip().endswith("::"):
            shown += ["::", ""]
        shown.append(line)
    lines[:] = shown


def setup(app):
    """Register the hook."""
    app.connect("autodoc-process-docstring", show_blocks_as_they_are)
