"""Write the software bill of materials of an installed distribution, as CycloneDX 1.5 JSON.

    python .ci/sbom.py DISTRIBUTION OUTPUT.json [WHEEL]

It lists what the distribution needs without extras, with the versions that are installed in the
environment of this Python, and with WHEEL its SHA-256. With SOURCE_DATE_EPOCH it is reproducible.
"""

import hashlib
import json
import os
import re
import sys
import time
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement


def needs(name):
    """Canonical names of what a distribution needs here, without extras."""
    found = (Requirement(text) for text in distribution(name).requires or ())
    wanted = (each for each in found if each.marker is None or each.marker.evaluate({"extra": ""}))
    return sorted({re.sub(r"[-_.]+", "-", each.name).lower() for each in wanted})


def component(name):
    """One entry: name, version, package URL and, where it is declared, the license."""
    about = distribution(name).metadata
    url = f"pkg:pypi/{name}@{about['Version']}"
    found = {
        "type": "library",
        "bom-ref": url,
        "name": name,
        "version": about["Version"],
        "purl": url,
    }
    declared = about.get("License-Expression")
    return found | ({"licenses": [{"expression": declared}]} if declared else {})


def bill(name, wheel=None):
    """The bill as a dict."""
    edges, left = {}, [name]
    while left:
        each = left.pop()
        if each not in edges:
            edges[each] = needs(each)
            left += edges[each]
    known = {each: component(each) for each in sorted(edges)}
    main = component(name)
    if wheel is not None:
        digest = hashlib.sha256(Path(wheel).read_bytes()).hexdigest()
        main["hashes"] = [{"alg": "SHA-256", "content": digest}]
    now = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time())))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", now), "component": main},
        "components": [known[each] for each in sorted(edges) if each != name],
        "dependencies": [
            {
                "ref": known[each]["bom-ref"],
                "dependsOn": [known[to]["bom-ref"] for to in edges[each]],
            }
            for each in sorted(edges)
        ],
    }


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(bill(sys.argv[1], *sys.argv[3:]), indent=2) + "\n")
