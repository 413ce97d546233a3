"""Measure texts per second of the embedders that are installed, on generated text.

    python scripts/benchmark_embedders.py [NAME …] [--words 6 48 190] [--texts 200]
"""

import argparse
import random
import sys
import time

from graphrag_bench.errors import UserError
from graphrag_bench.registry import REGISTRY

WORDS = ("river", "the", "of", "president", "university", "1963", "founded", "northern", "album", "city", "in",
         "player", "published", "association", "a", "was", "by", "Copenhagen", "journal", "company", "history", "and",
         "record")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["hashing", "wordllama", "minilm"])
    parser.add_argument("--words", type=int, nargs="+", default=[6, 48, 190])
    parser.add_argument("--texts", type=int, default=200)
    options = parser.parse_args()
    for name in options.names:
        try:
            embedder = REGISTRY.get("embedder", name).call()
            embedder.embed(["warm up"])
            for words in options.words:
                rng = random.Random(words)
                texts = [" ".join(rng.choices(WORDS, k=words)) for _ in range(options.texts)]
                wall, cpu = time.perf_counter(), time.process_time()
                embedder.embed(texts)
                wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
                sys.stdout.write(f"{name:<24}{words:>5} words {len(texts) / wall:>10.0f} texts/s"
                                 f"{1000 * cpu / len(texts):>10.2f} CPU ms a text\n")
        except UserError as error:
            sys.stdout.write(f"{name:<24}left out: {error}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
