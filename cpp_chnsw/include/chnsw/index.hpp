// The index: what the Python module binds. All its functions may be called from several threads at once; build and add
// wait for searches to end, and searches for them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include "build.hpp"
#include "common.hpp"
#include "descent.hpp"
#include "file.hpp"
#include "level.hpp"
#include "traverse.hpp"
#include "workers.hpp"

namespace chnsw {

// Of one layer: `k` a query, one query after the other.
struct Hits {
  std::vector<std::int64_t> ids;
  std::vector<float> distances;
};

struct LayerStats {
  std::uint64_t vectors = 0, links = 0, max_degree = 0, bytes = 0, graph_distances = 0, exact_distances = 0;
  bool exact = false;
};

struct Stats {
  std::vector<LayerStats> layers;  // bottom first
  LayerStats hidden;               // all hidden levels together
  std::uint64_t hidden_levels = 0, vector_bytes = 0, graph_bytes = 0, traversal_bytes = 0, other_bytes = 0;
  std::uint64_t build_distances = 0, queries = 0;
  bool mapped = false;
};

class Index {
 public:
  explicit Index(const Settings& settings) : settings_(settings) { check(settings_); }
  Index(const Index&) = delete;
  Index& operator=(const Index&) = delete;

  const Settings& settings() const { return settings_; }
  std::size_t layer_count() const {
    const std::shared_lock lock(mutex_);
    return at_.size();
  }
  std::size_t layer_size(std::size_t layer) const {
    const std::shared_lock lock(mutex_);
    return level(layer).n;
  }
  std::size_t size() const {
    const std::shared_lock lock(mutex_);
    std::size_t sum = 0;
    for (const std::size_t l : at_) sum += levels_[l].n;
    return sum;
  }

  // Layers bottom first. Replaces what was there.
  void build(const std::vector<Matrix>& layers, unsigned threads) {
    if (layers.empty()) throw ValueError("there is no layer to build from; give at least one array, bottom first.");
    if (layers.size() > kMaxLevels / 8) throw ValueError("more than 512 layers; merge some.");
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const std::string name = "layer " + std::to_string(l);
      if (layers[l].rows == 0) throw ValueError(name + " has no vector; leave empty layers out.");
      if (layers[l].rows > kMaxNodes) throw ValueError(name + " has more than 2147483647 vectors.");
      check_rows(layers[l], name);
    }
    Workers workers(threads);
    HierarchyBuilder builder(settings_, scratches_, workers);
    std::vector<Level> levels = builder.build(layers);
    const std::unique_lock lock(mutex_);
    levels_ = std::move(levels);
    file_.reset();
    build_distances_ = builder.computed();
    adopt();
  }

  // For each of `layers` in their order: the k best of each query, padded with -1 and infinity.
  std::vector<Hits> search(const Matrix& queries, std::size_t k, std::size_t ef,
                           const std::vector<std::uint32_t>& layers, unsigned threads) const {
    if (k < 1 || k > kMaxEf) throw ValueError("k must be between 1 and 1048576.");
    if (ef < 1 || ef > kMaxEf) throw ValueError("ef must be between 1 and 1048576.");
    check_rows(queries, "the queries");
    const std::shared_lock lock(mutex_);
    need_built();
    std::vector<Hits> found(layers.size());
    std::vector<Wanted> wanted;
    std::vector<std::vector<Key>> keys(layers.size());
    std::vector<std::size_t> widths(layers.size());
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const std::size_t at = at_[check_layer(layers[i])];
      if (wanted.size() <= at) wanted.resize(at + 1, Wanted{kPassingEf, 0, nullptr});
      if (wanted[at].keep != 0) throw ValueError("layer " + std::to_string(layers[i]) + " is asked for twice.");
      widths[i] = std::min<std::size_t>(k, levels_[at].n);
      keys[i].resize(queries.rows * widths[i]);
      wanted[at] = Wanted{std::min<std::size_t>(std::max(ef, k), levels_[at].n), widths[i], keys[i].data()};
    }
    const std::size_t stride = round_up(settings_.dim, kPadding);
    Array<float> rows(queries.rows * stride);
    for (std::size_t q = 0; q < queries.rows; ++q)
      read_row(settings_, queries.data + q * settings_.dim, rows.data() + q * stride, stride);
    // No more threads than there is work for: starting one costs as much as a few queries.
    if (queries.rows < 8) threads = 1;
    Workers workers(threads);
    Descent descent(settings_, levels_, scratches_, workers);
    const std::vector<Counted> counted = descent.run(rows.data(), queries.rows, wanted);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      Hits& hits = found[i];
      hits.ids.assign(queries.rows * k, -1);
      hits.distances.assign(queries.rows * k, std::numeric_limits<float>::infinity());
      for (std::size_t q = 0; q < queries.rows; ++q) {
        std::size_t filled = 0;
        for (std::size_t r = 0; r < widths[i]; ++r) {
          const Key key = keys[i][q * widths[i] + r];
          if (key == kNoKey) break;
          hits.ids[q * k + r] = position_of(key);
          hits.distances[q * k + r] = shown(distance_of(key));
          ++filled;
        }
        if (settings_.metric == Metric::cosine) settle(hits, q * k, filled);
      }
    }
    const std::lock_guard stats_lock(stats_mutex_);
    counted_ = counted;
    queries_ = queries.rows;
    return found;
  }

  // New rows of a layer; returns the id of the first.
  std::size_t add(std::size_t layer, const Matrix& rows, unsigned threads) {
    check_rows(rows, "the vectors");
    const std::unique_lock lock(mutex_);
    need_built();
    const std::size_t at = at_[check_layer(layer)];
    const std::size_t first = levels_[at].n;
    if (rows.rows == 0) return first;
    if (rows.rows > kMaxNodes - first) throw ValueError("the layer would have more than 2147483647 vectors.");
    Workers workers(threads);
    HierarchyBuilder builder(settings_, scratches_, workers);
    HierarchyBuilder::Added added = builder.add(levels_, at, rows);
    levels_[at] = std::move(added.level);
    if (!added.down_above.empty()) levels_[at - 1].down = std::move(added.down_above);
    if (!added.link_above.empty()) levels_[added.real_above].link = std::move(added.link_above);
    build_distances_ += builder.computed();
    return first;
  }

  void save(const std::filesystem::path& path) const {
    const std::shared_lock lock(mutex_);
    need_built();
    save_file(path, settings_, levels_);
  }

  static std::unique_ptr<Index> load(const std::filesystem::path& path, bool map) {
    Loaded loaded = load_file(path, map);
    auto index = std::make_unique<Index>(loaded.settings);
    index->levels_ = std::move(loaded.levels);
    index->file_ = std::move(loaded.file);
    index->adopt();
    return index;
  }

  // Ids of the neighbours of a vector within its layer, ascending.
  std::vector<std::int64_t> neighbours(std::size_t layer, std::int64_t id) const {
    const std::shared_lock lock(mutex_);
    const Level& here = level(layer);
    const std::uint32_t position = here.positions[check_id(here, id)];
    std::vector<std::int64_t> ids;
    for (std::uint32_t i = 0; i < here.degree(position); ++i) ids.push_back(here.ids[here.neighbours(position)[i]]);
    std::sort(ids.begin(), ids.end());
    return ids;
  }

  // Ids of the vectors of the layer below that a vector links to; none in the bottom layer.
  std::vector<std::int64_t> links(std::size_t layer, std::int64_t id) const {
    const std::shared_lock lock(mutex_);
    const Level& here = level(layer);
    const std::uint32_t position = here.positions[check_id(here, id)];
    if (layer == 0) return {};
    const Level& below = levels_[at_[layer - 1]];
    return {static_cast<std::int64_t>(below.ids[here.link.empty() ? here.down[position] : here.link[position]])};
  }

  // Id of the node of a layer from which all others are reached.
  std::int64_t entry(std::size_t layer) const {
    const std::shared_lock lock(mutex_);
    const Level& here = level(layer);
    return here.ids[here.entry];
  }

  Stats stats() const {
    const std::shared_lock lock(mutex_);
    const std::lock_guard stats_lock(stats_mutex_);
    Stats stats;
    stats.layers.resize(at_.size());
    for (std::size_t l = 0; l < levels_.size(); ++l) {
      const Level& here = levels_[l];
      LayerStats& to = here.hidden() ? stats.hidden : stats.layers[static_cast<std::size_t>(here.layer)];
      stats.hidden_levels += here.hidden() ? 1 : 0;
      to.vectors += here.n;
      to.links += here.targets.size();
      for (std::uint32_t p = 0; p < here.n; ++p) to.max_degree = std::max<std::uint64_t>(to.max_degree, here.degree(p));
      to.bytes += here.total_bytes();
      to.exact = here.n <= settings_.exact_below;
      if (l < counted_.size()) {
        to.graph_distances += counted_[l].graph;
        to.exact_distances += counted_[l].exact;
      }
      stats.vector_bytes += here.vectors.bytes();
      stats.graph_bytes += here.graph_bytes();
      stats.traversal_bytes += here.traversal_bytes();
      stats.other_bytes += here.ids.bytes() + here.positions.bytes();
    }
    stats.queries = queries_;
    stats.build_distances = build_distances_;
    stats.mapped = file_ != nullptr && file_->mapped();
    return stats;
  }

 private:
  static constexpr std::size_t kPassingEf = 8;  // in levels that are only passed through

  void check_rows(const Matrix& matrix, const std::string& name) const {
    const std::size_t dim = settings_.dim;
    for (std::size_t r = 0; r < matrix.rows; ++r) {
      const float* const row = matrix.data + r * dim;
      bool good = true;
      bool zero = true;
      for (std::size_t d = 0; d < dim; ++d) {
        good = good & (std::fabs(row[d]) <= kMaxValue);
        zero = zero & (row[d] == 0.0f);
      }
      const auto fail = [&](const char* what) { throw ValueError("row " + std::to_string(r) + " of " + name + what); };
      if (!good) fail(" holds NaN, an infinity or a value beyond 1e16; remove or repair it.");
      if (zero && settings_.metric == Metric::cosine)
        fail(" is all zeros, which has no direction; remove it, or take metric 'l2' or 'ip'.");
    }
  }
  std::size_t check_layer(std::size_t layer) const {
    if (layer >= at_.size())
      throw ValueError("there is no layer " + std::to_string(layer) + "; layers are 0 (bottom) to " +
                       std::to_string(at_.empty() ? 0 : at_.size() - 1) + ".");
    return layer;
  }
  static std::size_t check_id(const Level& level, std::int64_t id) {
    if (id < 0 || id >= static_cast<std::int64_t>(level.n))
      throw ValueError("there is no vector " + std::to_string(id) + " in the layer; ids are 0 to " +
                       std::to_string(level.n - 1) + ".");
    return static_cast<std::size_t>(id);
  }
  void need_built() const {
    if (levels_.empty()) throw ValueError("the index is empty; call build() first, or load a file.");
  }
  const Level& level(std::size_t layer) const {
    need_built();
    return levels_[at_[check_layer(layer)]];
  }
  float shown(float distance) const {
    return settings_.metric == Metric::cosine ? std::max(0.0f, 1.0f + distance) : distance;
  }
  // 1 - cosine rounds: distances that were apart may now be equal, and then the lower id comes first.
  static void settle(Hits& hits, std::size_t begin, std::size_t count) {
    for (std::size_t i = begin + 1; i < begin + count; ++i)
      for (std::size_t j = i; j > begin && hits.distances[j] == hits.distances[j - 1] && hits.ids[j] < hits.ids[j - 1];
           --j)
        std::swap(hits.ids[j], hits.ids[j - 1]);
  }
  void adopt() {
    at_.clear();
    for (std::size_t l = levels_.size(); l-- > 0;)
      if (!levels_[l].hidden()) at_.push_back(l);
    const std::lock_guard stats_lock(stats_mutex_);
    counted_.clear();
    queries_ = 0;
  }

  Settings settings_;
  std::vector<Level> levels_;       // top first, hidden ones among them
  std::vector<std::size_t> at_;     // where layer i is
  std::shared_ptr<FileBytes> file_;  // outlives the arrays that look into it
  std::uint64_t build_distances_ = 0;
  mutable std::shared_mutex mutex_;
  mutable std::mutex stats_mutex_;
  mutable std::vector<Counted> counted_;
  mutable std::uint64_t queries_ = 0;
  mutable Scratches scratches_;
};

}  // namespace chnsw
