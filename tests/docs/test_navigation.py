"""The site's navigation (mkdocs.yml) has every page, because `make docs` refuses a page that nobody would find."""

from __future__ import annotations

from pathlib import Path

PROJECT = Path(__file__).parents[2]


def test_every_page_of_a_paper_is_in_the_navigation() -> None:
    navigation = (PROJECT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = sorted((PROJECT / "papers").glob("*.md"))
    assert pages
    assert [page.name for page in pages if f"papers/{page.name}" not in navigation] == []


def test_no_page_of_a_paper_links_into_docs() -> None:
    """On the site both lie in one folder, so such a link would lead nowhere: name the file instead."""
    linked = [
        page.name for page in (PROJECT / "papers").glob("*.md") if "](../docs/" in page.read_text(encoding="utf-8")
    ]
    assert linked == []
