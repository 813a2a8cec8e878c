"""Follow every link of a built site that stays in it: `python check_links.py site`."""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag


class Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = set(), set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)
            elif name in ("href", "src") and value:
                self.links.add(value)


def is_outside(link):
    return "://" in link or link.startswith(("//", "data:", "mailto:", "javascript:"))


def dead_links(folder):
    """Each dead link of a folder of pages as (page, link), and how many were followed."""
    pages = {
        path.resolve(): Page(path)
        for path in sorted(folder.rglob("*.html"))
        if "_static" not in path.parts
    }
    dead, followed = [], 0
    for path, page in pages.items():
        for link in sorted(page.links):
            if is_outside(link) or link == "#":
                continue
            followed += 1
            place, anchor = urldefrag(link)
            target = (path.parent / unquote(place.split("?")[0])).resolve() if place else path
            exists = target.exists()
            known = anchor in pages[target].anchors if target in pages and anchor else True
            if not exists or not (known or unquote(anchor) in pages[target].anchors):
                dead.append((str(path.relative_to(folder.resolve())), link))
    return dead, followed


def main(folder):
    dead, followed = dead_links(Path(folder))
    for page, link in dead:
        print(f"{page}: dead link {link}")
    print(f"{followed} links followed, {len(dead)} dead")
    return 1 if dead or not followed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
