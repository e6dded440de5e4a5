#!/usr/bin/env python3
"""Prints a page of the guide as Doxygen takes it: filter.py PAGE.md. Headings get names, and links to pages and headings become references
to these, as they are on the web pages of a repository. A link to what is no page of the site is left out, and its text stays."""
import os
import pathlib
import re
import sys

SOURCES = pathlib.Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^\s*```")


def name_of(page):
    """The name of a page, which Doxygen's files are named after."""
    if page == SOURCES / "docs" / "index.md":
        return "index"  # as Doxygen calls the first page
    return "page_" + "_".join(page.relative_to(SOURCES).with_suffix("").parts).lower().replace("docs_", "")


def is_page(path):
    return path.suffix == ".md" and (path.parent in (SOURCES / "docs", SOURCES / "docs" / "ways_in") or path in (SOURCES / "README.md", SOURCES / "CHANGELOG.md"))


def anchor_of(heading):
    return re.sub(r"[^\w\- ]", "", heading.strip().lower().replace("`", "")).replace(" ", "-").replace("ü", "ue")


def with_links(line, page):
    def replaced(link):
        text, target = link.group(1), link.group(2)
        if re.match(r"\w+:", target):
            return link.group(0)
        file, _, anchor = target.partition("#")
        path = pathlib.Path(os.path.normpath(page.parent / file)) if file else page
        if path.suffix == ".svg":
            return link.group(0)
        if not is_page(path):
            return text
        reference = name_of(path) + ("_" + anchor if anchor else "")
        return f"@{'subpage' if page.name == 'index.md' and not anchor else 'ref'} {reference} \"{text}\""

    return re.sub(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)", replaced, line)


def main():
    page = pathlib.Path(sys.argv[1]).resolve()
    inside = False
    first = True
    # A link may go over the end of a line.
    text = re.sub(r"\[([^\]\n]*)\n\s*([^\]\n]*)\]\(", r"[\1 \2](", page.read_text(encoding="utf-8"))
    for line in text.splitlines():
        if FENCE.match(line):
            inside = not inside
            line = re.sub(r"```(\w+)", lambda fence: "```{." + {"sh": "sh", "text": "txt"}.get(fence.group(1), fence.group(1)) + "}", line)
        heading = re.match(r"^(#+) (.*)$", line)
        if inside or not heading:
            print(line if inside or FENCE.match(line) else with_links(line, page))
            continue
        title = with_links(heading.group(2), page)
        if first and page.name == "index.md":
            print(f"{heading.group(1)} {title}" + " {#mainpage}")
        else:
            print(f"{heading.group(1)} {title} " + "{#" + name_of(page) + ("" if first else "_" + anchor_of(heading.group(2))) + "}")
        first = False


main()
