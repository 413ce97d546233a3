#include <nanobind/nanobind.h>

NB_MODULE(_core, m) { m.doc() = "C-HNSW: one navigable graph over all layers of a hierarchy"; }
