#!/bin/sh
# The site of the guide is made without a warning, and all its links lead somewhere: site.sh SOURCES. Exit code 77 (skipped), with the reason,
# where there is no Doxygen.
set -eu
sources=$1
if ! command -v doxygen >/dev/null || [ ! -d /usr/share/doxygen-awesome-css ]; then
  echo "skipped: there is no doxygen, or not its theme (Debian: doxygen, doxygen-awesome-css)"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$sources/tools/site.sh" "$folder"
python3 - "$folder/html" <<'LINKS'
import html.parser
import pathlib
import sys
import urllib.parse

folder = pathlib.Path(sys.argv[1])


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.names, self.links = set(), []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        for key, value in attributes:
            if key in ("id", "name"):
                self.names.add(value)
            elif key in ("href", "src", "data") and value:
                self.links.append(value)


pages = {path.name: Page(path) for path in folder.glob("*.html")}
broken = []
for name, page in pages.items():
    for link in page.links:
        if urllib.parse.urlsplit(link).scheme:
            continue
        file, _, anchor = urllib.parse.unquote(link).partition("#")
        file = file or name
        exists = file in pages or (folder / file).exists()
        # Places within the reference are Doxygen's own.
        of_guide = file == "index.html" or file.startswith("page_")
        if not exists or (anchor and of_guide and anchor not in pages[file].names):
            broken.append(f"{name}: {link}")
wanted = ["index", "page_first_sum", "page_concepts", "page_ways_in_mpi", "classrondo_1_1Communicator", "classrondo_1_1GradientReducer"]
broken += [f"{one}.html is missing" for one in wanted if f"{one}.html" not in pages]
print(*broken, f"{len(pages)} pages, {sum(len(page.links) for page in pages.values())} links, {len(broken)} broken", sep="\n")
sys.exit(bool(broken))
LINKS
