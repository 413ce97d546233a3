"""What `bench_chnsw.py` is made of: data, contestants, curves and their plot."""

import os

# Read when OpenMP is loaded, hence here, before faiss is: its threads sleep while they wait for each other. By default they
# spin, and where other work wants the cores faiss then loses several times its own work, in each of its calls (one a layer).
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
