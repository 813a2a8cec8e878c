"""
The demo: run every example
===========================

    python examples/run_demo.py            # or: make demo
    python examples/run_demo.py --quick    # less data

Pictures go to `examples/output/` (`--output` for another folder). If one example fails, the others
still run, and the exit status is 1.
"""

import argparse
import sys
import time
import traceback
from pathlib import Path

import plot_days
import plot_densest_place
import plot_digits_pipeline
import plot_far_mean
import plot_federated
import plot_number_of_clusters
import plot_private_coreset
import plot_private_mixture
import plot_private_palette
import plot_private_search
import plot_private_topics
import plot_profile
import plot_what_epsilon_costs

PARTS = [
    ("Segments of persons, ready to publish", plot_profile),
    ("The palette of a photograph", plot_private_palette),
    ("Handwritten digits in a pipeline", plot_digits_pipeline),
    ("The mean of data far away", plot_far_mean),
    ("The densest place of a city", plot_densest_place),
    ("New rows every day", plot_days),
    ("A private mixture", plot_private_mixture),
    ("K-means over clients", plot_federated),
    ("Topics of documents", plot_private_topics),
    ("What epsilon costs", plot_what_epsilon_costs),
    ("How many clusters", plot_number_of_clusters),
    ("A search with one guarantee", plot_private_search),
    ("A private coreset", plot_private_coreset),
]


def parse_arguments(argv):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = Path(__file__).resolve().parent / "output"
    parser.add_argument("--output", type=Path, default=default, help="folder for the PNGs")
    parser.add_argument("--quick", action="store_true", help="less data, in a few seconds")
    return parser.parse_args(argv)


def run(part, arguments):
    """Run one example; return whether it succeeded."""
    name = part.__name__.removeprefix("plot_")
    options = ["--output", str(arguments.output / f"{name}.png")]
    try:
        part.main(options + ["--quick"] * arguments.quick)
    except Exception:
        traceback.print_exc()
        return False
    return True


def main(argv=None):
    arguments = parse_arguments(argv)
    failed = []
    for i, (title, part) in enumerate(PARTS, start=1):
        print(f"\n=== {i} of {len(PARTS)}: {title} {'=' * (60 - len(title))}\n", flush=True)
        start = time.perf_counter()
        if not run(part, arguments):
            failed.append(title)
        print(f"({time.perf_counter() - start:.0f} seconds)", flush=True)
    if failed:
        print(f"\nFAILED: {', '.join(failed)}", file=sys.stderr)
        return 1
    print(f"\nAll {len(PARTS)} parts done. The pictures are in {arguments.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
