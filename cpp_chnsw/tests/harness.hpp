// What the drivers share: a check that says where it failed, made-up vectors, and brute force to compare with.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <unistd.h>

#include "chnsw/index.hpp"

#define CHECK(condition)                                                               \
  do {                                                                                 \
    if (!(condition)) {                                                                \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);   \
      std::exit(1);                                                                    \
    }                                                                                  \
  } while (false)

// The statement must throw this error, with a sentence.
#define CHECK_THROWS(Error, statement)                                                  \
  do {                                                                                  \
    bool thrown = false;                                                                \
    try {                                                                               \
      statement;                                                                        \
    } catch (const Error& error) {                                                      \
      thrown = std::string(error.what()).size() > 10;                                   \
    }                                                                                   \
    if (!thrown) {                                                                      \
      std::fprintf(stderr, "%s:%d: did not throw: %s\n", __FILE__, __LINE__, #statement); \
      std::exit(1);                                                                     \
    }                                                                                   \
  } while (false)

namespace harness {

struct Rows {
  std::size_t n = 0, dim = 0;
  std::vector<float> values;
  const float* row(std::size_t i) const { return values.data() + i * dim; }
};

inline float uniform(chnsw::Random& random) {  // in [-1, 1)
  return static_cast<float>(random.below(1u << 24)) / static_cast<float>(1u << 23) - 1.0f;
}

inline Rows rows(std::size_t n, std::size_t dim, std::uint64_t seed) {
  chnsw::Random random(seed);
  Rows out{n, dim, std::vector<float>(n * dim)};
  for (float& value : out.values) value = uniform(random);
  return out;
}

// Children of the layer above: its rows, each with noise.
inline Rows children(const Rows& above, std::size_t n, float noise, std::uint64_t seed) {
  Rows out = rows(n, above.dim, seed);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t d = 0; d < above.dim; ++d)
      out.values[i * above.dim + d] = above.row(i % above.n)[d] + noise * out.values[i * above.dim + d];
  return out;
}

// A hierarchy bottom first.
inline std::vector<Rows> hierarchy(const std::vector<std::size_t>& sizes, std::size_t dim, std::uint64_t seed) {
  std::vector<Rows> out(sizes.size());
  for (std::size_t l = sizes.size(); l-- > 0;)
    out[l] = l + 1 == sizes.size() ? rows(sizes[l], dim, seed) : children(out[l + 1], sizes[l], 0.4f, seed + l + 1);
  return out;
}

inline double distance(chnsw::Metric metric, const float* a, const float* b, std::size_t dim) {
  double dot = 0, squares = 0, of_a = 0, of_b = 0;
  for (std::size_t d = 0; d < dim; ++d) {
    const double x = a[d], y = b[d];
    dot += x * y;
    squares += (x - y) * (x - y);
    of_a += x * x;
    of_b += y * y;
  }
  if (metric == chnsw::Metric::l2) return squares;
  return metric == chnsw::Metric::ip ? -dot : 1.0 - dot / std::sqrt(of_a * of_b);
}

// All distances, ascending.
inline std::vector<double> distances(chnsw::Metric metric, const Rows& layer, const float* query) {
  std::vector<double> out(layer.n);
  for (std::size_t i = 0; i < layer.n; ++i) out[i] = distance(metric, query, layer.row(i), layer.dim);
  std::sort(out.begin(), out.end());
  return out;
}

inline chnsw::Matrix matrix(const Rows& rows) { return {rows.values.data(), rows.n}; }

inline void build(chnsw::Index& index, const std::vector<Rows>& layers, unsigned threads) {
  std::vector<chnsw::Matrix> matrices;
  for (const Rows& layer : layers) matrices.push_back(matrix(layer));
  index.build(matrices, threads);
}

// Of all layers.
inline std::vector<chnsw::Hits> search(const chnsw::Index& index, const Rows& queries, std::size_t k, std::size_t ef,
                                       unsigned threads = 1) {
  std::vector<std::uint32_t> layers;
  for (std::size_t l = 0; l < index.layer_count(); ++l) layers.push_back(static_cast<std::uint32_t>(l));
  return index.search(matrix(queries), k, ef, layers, threads);
}

inline chnsw::Hits search_layer(const chnsw::Index& index, std::size_t layer, const Rows& queries, std::size_t k,
                                std::size_t ef, unsigned threads = 1) {
  return index.search(matrix(queries), k, ef, {static_cast<std::uint32_t>(layer)}, threads)[0];
}

inline std::vector<std::int64_t> add(chnsw::Index& index, std::size_t layer, const Rows& rows, unsigned threads = 1) {
  const std::size_t first = index.add(layer, matrix(rows), threads);
  std::vector<std::int64_t> ids(rows.n);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(first + i);
  return ids;
}

// Asks for everything that can be looked at in a layer, and finds it to be of that layer.
inline void inspect(const chnsw::Index& index, std::size_t layer) {
  const auto n = static_cast<std::int64_t>(index.layer_size(layer));
  CHECK(index.entry(layer) >= 0 && index.entry(layer) < n);
  for (std::int64_t id = 0; id < n; ++id) {
    for (const std::int64_t other : index.neighbours(layer, id)) CHECK(other >= 0 && other < n);
    for (const std::int64_t below : index.links(layer, id))
      CHECK(layer > 0 && below >= 0 && below < static_cast<std::int64_t>(index.layer_size(layer - 1)));
  }
  CHECK(index.stats().layers[layer].vectors == static_cast<std::uint64_t>(n));
}

// A file of its own in the temporary folder, gone with the object.
class File {
 public:
  explicit File(const std::string& name)
      : path_((std::filesystem::temp_directory_path() / ("chnsw_" + std::to_string(::getpid()) + "_" + name)).string()) {}
  ~File() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  const std::string& path() const { return path_; }
  std::vector<char> read() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  void write(const std::vector<char>& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  std::string path_;
};

}  // namespace harness
