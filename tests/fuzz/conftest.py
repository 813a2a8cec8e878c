"""The table of calls and of how they ended, at the end of a run."""

from collections import Counter, defaultdict


def pytest_terminal_summary(terminalreporter):
    found = defaultdict(Counter)
    for reports in terminalreporter.stats.values():
        for report in reports:
            for key, value in getattr(report, "user_properties", ()):
                if key == "fuzz" and report.when == "call":
                    found[value[0]].update(value[1])
    if found:
        terminalreporter.section("calls, by how they ended")
        for line in _lines(found):
            terminalreporter.write_line(line)


def _lines(found):
    kinds = [kind for kind, _ in sum(found.values(), Counter()).most_common()]
    rows = [("", "calls", *kinds)] + [
        (name, sum(counts.values()), *(counts[kind] for kind in kinds))
        for name, counts in sorted(found.items())
    ]
    rows.append(
        ("all", *(sum(column) for column in zip(*(row[1:] for row in rows[1:]), strict=True)))
    )
    for row in rows:
        yield f"{row[0]:<22}" + "".join(
            f"{cell:>{max(len(str(head)), 6) + 2}}"
            for cell, head in zip(row[1:], rows[0][1:], strict=True)
        )
