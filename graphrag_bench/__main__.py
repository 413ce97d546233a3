"""``python -m graphrag_bench``."""

from graphrag_bench.cli import main

raise SystemExit(main())
