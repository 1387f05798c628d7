"""Hooks of mkdocs.yml: the pages of papers/ are part of the site.

In the repository, docs/ links to them as ../papers/NAME.md, and docs/results/ as ../../papers/NAME.md. On the site they
are at papers/NAME.
"""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for page in sorted((ROOT / "papers").glob("*.md")):
        files.append(File.generated(config, f"papers/{page.name}", abs_src_path=str(page)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    return markdown.replace("](../papers/", "](papers/").replace("](../../papers/", "](../papers/")
