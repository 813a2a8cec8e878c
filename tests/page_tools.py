"""Readers of pages that notebooks show."""

import re
from html.parser import HTMLParser

VOID = {"br", "meta"}


class Reader(HTMLParser):
    """Texts of a page, its tags in order, and whether each is closed where it has to be."""

    def __init__(self, page):
        super().__init__()
        self.texts, self.tags, self.attributes, self.open = [], [], [], []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.texts.append(data.replace("\xa0", " "))

    def widths(self):
        styles = [value for name, value in self.attributes if name == "style"]
        return [float(w) for style in styles for w in re.findall(r"width:([\d.]+)%", style)]
