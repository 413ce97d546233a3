// Build, search, add, save and load on made-up data against brute force, for every metric, dtype and kind of SIMD.

#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "chnsw/index.hpp"
#include "harness.hpp"

namespace {

using chnsw::Dtype;
using chnsw::Index;
using chnsw::Metric;
using harness::Rows;

constexpr std::size_t kK = 5;

chnsw::Settings settings_of(std::size_t dim, Metric metric, Dtype dtype, std::uint32_t exact_below) {
  chnsw::Settings settings;
  settings.dim = static_cast<std::uint32_t>(dim);
  settings.metric = metric;
  settings.dtype = dtype;
  settings.m = 8;
  settings.ef_construction = 40;
  settings.exact_below = exact_below;
  return settings;
}

// What any answer must be: sorted by (distance, id), ids of the layer and each once, distances true, padded at the end.
// Returns the share of the true nearest.
double checked_recall(Metric metric, const Rows& layer, const Rows& queries, const chnsw::Hits& hits, std::size_t k) {
  std::size_t found = 0, wanted = 0;
  for (std::size_t q = 0; q < queries.n; ++q) {
    const std::vector<double> truth = harness::distances(metric, layer, queries.row(q));
    const std::size_t there = std::min(k, layer.n);
    std::set<std::int64_t> seen;
    for (std::size_t r = 0; r < k; ++r) {
      const std::int64_t id = hits.ids[q * k + r];
      const float distance = hits.distances[q * k + r];
      if (r >= there) {
        CHECK(id == -1 && distance == std::numeric_limits<float>::infinity());
        continue;
      }
      CHECK(id >= 0 && id < static_cast<std::int64_t>(layer.n) && seen.insert(id).second);
      const double exact = harness::distance(metric, queries.row(q), layer.row(static_cast<std::size_t>(id)), layer.dim);
      CHECK(std::fabs(distance - exact) < 1e-3 * (1 + std::fabs(exact)));
      if (r > 0) {
        const float before = hits.distances[q * k + r - 1];
        CHECK(before < distance || (before == distance && hits.ids[q * k + r - 1] < id));
      }
      found += exact <= truth[there - 1] + 1e-4 * (1 + std::fabs(exact)) ? 1 : 0;
    }
    wanted += there;
  }
  return wanted == 0 ? 1.0 : static_cast<double>(found) / static_cast<double>(wanted);
}

void check_all(const Index& index, Metric metric, const std::vector<Rows>& layers, const Rows& queries) {
  const auto hits = harness::search(index, queries, kK, 64);
  CHECK(hits.size() == layers.size());
  for (std::size_t l = 0; l < layers.size(); ++l) {
    CHECK(checked_recall(metric, layers[l], queries, hits[l], kK) > 0.95);
    harness::inspect(index, l);
    if (layers[l].n >= kK) {
      const chnsw::Hits alone = harness::search_layer(index, l, queries, kK, 64);
      CHECK(checked_recall(metric, layers[l], queries, alone, kK) > 0.95);
    }
  }
}

void round_trip(const Index& index, const Rows& queries) {
  const harness::File one("one"), two("two");
  index.save(one.path());
  const auto before = harness::search(index, queries, kK, 32);
  for (const bool map : {false, true}) {
    const std::unique_ptr<Index> held = Index::load(one.path(), map);
    const Index& loaded = *held;
    const auto after = harness::search(loaded, queries, kK, 32);
    for (std::size_t l = 0; l < before.size(); ++l)
      CHECK(before[l].ids == after[l].ids && before[l].distances == after[l].distances);
    loaded.save(two.path());
    CHECK(one.read() == two.read());
    loaded.save(one.path());  // over the file that it may be looking into
    CHECK(one.read() == two.read());
  }
}

void metrics_and_dtypes() {
  for (const std::size_t dim : {1, 7, 16, 33})
    for (const Metric metric : {Metric::ip, Metric::l2, Metric::cosine})
      for (const Dtype dtype : {Dtype::float32, Dtype::float16, Dtype::int8}) {
        if (dim == 1 && (metric != Metric::l2 || dtype != Dtype::float32)) continue;  // all at one distance, or nearly
        if (dim == 7 && dtype == Dtype::int8) continue;
        const std::vector<Rows> layers = harness::hierarchy({500, 60, 12, 3}, dim, 100 + dim);
        const Rows queries = harness::children(layers[1], 21, 0.4f, 9);
        for (const std::uint32_t exact_below : {0u, 30u}) {
          Index index(settings_of(dim, metric, dtype, exact_below));
          harness::build(index, layers, 2);
          // Unnormalised inner products on a graph made for them: not everything is found, but what is, is right.
          if (metric == Metric::ip) {
            const auto hits = harness::search(index, queries, kK, 64);
            for (std::size_t l = 0; l < layers.size(); ++l)
              CHECK(checked_recall(metric, layers[l], queries, hits[l], kK) > 0.8);
          } else {
            check_all(index, metric, layers, queries);
          }
          round_trip(index, queries);
        }
      }
}

void simd_kinds() {
  const std::vector<Rows> layers = harness::hierarchy({700, 40}, 50, 3);
  const Rows queries = harness::children(layers[1], 30, 0.4f, 4);
  for (const char* kind : {"portable", "avx2", "avx512"}) {
    if (chnsw::find_kernels(kind) == nullptr) continue;
    chnsw::use_kernels(kind);
    for (const Dtype dtype : {Dtype::float32, Dtype::float16, Dtype::int8}) {
      Index index(settings_of(50, Metric::l2, dtype, 0));
      harness::build(index, layers, 1);
      check_all(index, Metric::l2, layers, queries);
    }
  }
  chnsw::use_kernels("auto");
}

void shapes() {
  struct Shape {
    std::vector<std::size_t> sizes;
  };
  // One vector; single layers with hidden levels; an upper layer greater than the lower; many layers of one.
  for (const auto& sizes : std::vector<std::vector<std::size_t>>{{1}, {2, 1}, {1, 1, 1, 1}, {3000}, {5, 300}, {2500, 1}, {4, 4, 4}}) {
    const std::vector<Rows> layers = harness::hierarchy(sizes, 12, 31);
    Index index(settings_of(12, Metric::l2, Dtype::float32, 0));
    harness::build(index, layers, 2);
    check_all(index, Metric::l2, layers, harness::children(layers.back(), 15, 0.5f, 8));
    round_trip(index, harness::rows(3, 12, 1));
    const auto none = harness::search(index, Rows{0, 12, {}}, kK, 10);
    CHECK(none.size() == sizes.size() && none[0].ids.empty());
  }
}

void copies() {  // most vectors are equal: nothing is cut off, and any of the equal ones is an answer
  std::vector<Rows> layers = harness::hierarchy({800, 50}, 10, 13);
  for (std::size_t i = 0; i < 600; ++i)
    std::copy_n(layers[0].row(799), 10, layers[0].values.begin() + static_cast<std::ptrdiff_t>(i * 10));
  for (std::size_t i = 0; i < 40; ++i)
    std::copy_n(layers[1].row(49), 10, layers[1].values.begin() + static_cast<std::ptrdiff_t>(i * 10));
  for (const Metric metric : {Metric::l2, Metric::cosine}) {
    Index index(settings_of(10, metric, Dtype::float32, 0));
    harness::build(index, layers, 2);
    check_all(index, metric, layers, layers[0]);
  }
}

void adding() {
  for (const Dtype dtype : {Dtype::float32, Dtype::int8, Dtype::float16}) {
    std::vector<Rows> layers = harness::hierarchy({400, 50, 8}, 20, 55);
    Index index(settings_of(20, Metric::l2, dtype, 10));
    harness::build(index, layers, 1);
    const std::size_t turns[] = {0, 1, 2, 0, 0, 1};
    for (std::size_t turn = 0; turn < std::size(turns); ++turn) {
      const std::size_t l = turns[turn];
      const Rows more = harness::children(layers[l], turn == 3 ? 1 : 37, 0.3f, 60 + turn);
      const std::vector<std::int64_t> ids = harness::add(index, l, more);
      CHECK(ids.size() == more.n);
      for (std::size_t i = 0; i < ids.size(); ++i) CHECK(ids[i] == static_cast<std::int64_t>(layers[l].n + i));
      layers[l].values.insert(layers[l].values.end(), more.values.begin(), more.values.end());
      layers[l].n += more.n;
      check_all(index, Metric::l2, layers, harness::children(layers[0], 20, 0.2f, 70 + turn));
    }
    const harness::File file("added");
    index.save(file.path());
    const std::unique_ptr<Index> held = Index::load(file.path(), true);  // what looks into a file can grow too
    Index& loaded = *held;
    const Rows more = harness::children(layers[0], 5, 0.3f, 90);
    harness::add(loaded, 0, more);
    layers[0].values.insert(layers[0].values.end(), more.values.begin(), more.values.end());
    layers[0].n += more.n;
    check_all(loaded, Metric::l2, layers, harness::children(layers[0], 20, 0.2f, 91));
  }
}

// Links are the true nearest nodes of the layer below, and every node is reached from any search's start.
void links() {
  for (const Metric metric : {Metric::l2, Metric::cosine, Metric::ip}) {
    const std::vector<Rows> layers = harness::hierarchy({5000, 90, 9}, 16, 71);
    Index index(settings_of(16, metric, Dtype::float32, 0));
    harness::build(index, layers, 2);
    for (std::size_t l = 1; l < layers.size(); ++l)
      for (std::size_t i = 0; i < layers[l].n; ++i) {
        const std::vector<std::int64_t> below = index.links(l, static_cast<std::int64_t>(i));
        CHECK(!below.empty());
        const double nearest = harness::distances(metric, layers[l - 1], layers[l].row(i))[0];
        const double got =
            harness::distance(metric, layers[l].row(i), layers[l - 1].row(static_cast<std::size_t>(below[0])), 16);
        CHECK(got <= nearest + 1e-5 * (1 + std::fabs(nearest)));
      }
  }
}

void extremes() {  // greatest values, tiny ones, zeros
  for (const float size : {1e15f, 1e-20f, 0.0f}) {
    std::vector<Rows> layers = harness::hierarchy({300, 20}, 8, 81);
    for (Rows& layer : layers)
      for (float& value : layer.values) value *= size;
    for (const Metric metric : {Metric::l2, Metric::ip})
      for (const Dtype dtype : {Dtype::float32, Dtype::float16, Dtype::int8}) {
        Index index(settings_of(8, metric, dtype, 0));
        if (dtype == Dtype::float16 && size > 1e5f) {  // beyond what a half can hold
          CHECK_THROWS(chnsw::ValueError, harness::build(index, layers, 1));
          continue;
        }
        harness::build(index, layers, 1);
        const auto hits = harness::search(index, layers[1], kK, 300);
        for (const std::int64_t id : hits[0].ids) CHECK(id >= 0 && id < 300);
        round_trip(index, layers[1]);
      }
  }
}

void mistakes() {
  const std::vector<Rows> layers = harness::hierarchy({50, 5}, 4, 2);
  const auto broken = [&](float value) {
    std::vector<Rows> out = layers;
    out[0].values[17] = value;
    return out;
  };
  chnsw::Settings none = settings_of(4, Metric::l2, Dtype::float32, 0);
  none.dim = 0;
  CHECK_THROWS(chnsw::ValueError, Index{none});
  Index index(settings_of(4, Metric::cosine, Dtype::float32, 0));
  CHECK_THROWS(chnsw::ValueError, harness::search(index, layers[1], 1, 10));  // before build
  CHECK_THROWS(chnsw::ValueError, harness::build(index, {}, 1));
  CHECK_THROWS(chnsw::ValueError, harness::build(index, {layers[0], Rows{0, 4, {}}}, 1));
  CHECK_THROWS(chnsw::ValueError, harness::build(index, broken(std::nanf("")), 1));
  CHECK_THROWS(chnsw::ValueError, harness::build(index, broken(std::numeric_limits<float>::infinity()), 1));
  std::vector<Rows> zero = layers;
  std::fill_n(zero[1].values.begin(), 4, 0.0f);
  CHECK_THROWS(chnsw::ValueError, harness::build(index, zero, 1));
  harness::build(index, layers, 1);
  CHECK_THROWS(chnsw::ValueError, harness::search_layer(index, 2, layers[1], 1, 10));  // no such layer
  CHECK_THROWS(chnsw::ValueError, harness::search(index, zero[1], 1, 10));
  CHECK_THROWS(chnsw::ValueError, harness::search(index, layers[1], 0, 10));
  CHECK_THROWS(chnsw::ValueError, index.links(1, 5));
  CHECK_THROWS(chnsw::ValueError, index.links(0, -1));
  CHECK_THROWS(chnsw::ValueError, index.neighbours(0, 50));
  CHECK_THROWS(chnsw::ValueError, harness::add(index, 5, layers[1]));
  CHECK_THROWS(chnsw::ValueError, harness::add(index, 0, broken(std::nanf(""))[0]));
  CHECK_THROWS(chnsw::FileError, index.save("/nonexistent folder/x"));
  CHECK_THROWS(chnsw::FileError, Index::load("/nonexistent folder/x", true));
  CHECK_THROWS(chnsw::FileError, Index::load("/", true));
  CHECK_THROWS(chnsw::ValueError, chnsw::use_kernels("mmx"));
  harness::search(index, layers[1], 1, 10);  // and it still works
}

void random_settings() {
  chnsw::Random random(4);
  for (int i = 0; i < 25; ++i) {
    chnsw::Settings settings = settings_of(1 + random.below(40), static_cast<Metric>(random.below(3)),
                                           static_cast<Dtype>(random.below(3)), random.below(200));
    settings.m = 2 + random.below(20);
    settings.ef_construction = 1 + random.below(60);
    settings.entries = 1 + random.below(8);
    settings.seed = random.next();
    std::vector<std::size_t> sizes(1 + random.below(5));
    for (std::size_t& size : sizes) size = 1 + random.below(400);
    const std::vector<Rows> layers = harness::hierarchy(sizes, settings.dim, random.next());
    Index index(settings);
    harness::build(index, layers, 1 + random.below(3));
    const Rows queries = harness::rows(5, settings.dim, random.next());
    const std::size_t k = 1 + random.below(30);
    const auto hits = harness::search(index, queries, k, 1 + random.below(100));
    for (std::size_t l = 0; l < layers.size(); ++l) {
      checked_recall(settings.metric, layers[l], queries, hits[l], std::min(k, hits[l].ids.size() / queries.n));
      harness::inspect(index, l);
    }
    round_trip(index, queries);
  }
}

}  // namespace

int main() {
  metrics_and_dtypes();
  simd_kinds();
  shapes();
  copies();
  adding();
  links();
  extremes();
  mistakes();
  random_settings();
  std::printf("index: as brute force says\n");
}
