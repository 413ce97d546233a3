// The hierarchy, top-down (ArchRAG's Algorithm 3): each level is placed under the one above, linked within itself,
// linked from above, and made connected.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "common.hpp"
#include "descent.hpp"
#include "graph.hpp"
#include "level.hpp"
#include "links.hpp"
#include "traverse.hpp"
#include "workers.hpp"

namespace chnsw {

// Rows given by the user: `rows` times dim values, one after the other.
struct Matrix {
  const float* data = nullptr;
  std::size_t rows = 0;
};

// One row, padded with zeros and for cosine of length 1. -0 becomes 0, so that equal rows are equal bytes.
inline void read_row(const Settings& s, const float* from, float* to, std::size_t stride) {
  if (s.metric == Metric::cosine) {
    double square = 0;
    for (std::size_t d = 0; d < s.dim; ++d) square += static_cast<double>(from[d]) * from[d];
    const double inverse = 1.0 / std::sqrt(square);
    for (std::size_t d = 0; d < s.dim; ++d) to[d] = static_cast<float>(from[d] * inverse) + 0.0f;
  } else {
    for (std::size_t d = 0; d < s.dim; ++d) to[d] = from[d] + 0.0f;
  }
  std::fill(to + s.dim, to + stride, 0.0f);
}

// Rows of a user's array: all of them, or those of a sample.
struct Source {
  const float* data = nullptr;
  std::uint32_t n = 0;
  const std::uint32_t* sample = nullptr;
  const float* row(std::uint32_t i, std::size_t dim) const {
    return data + std::size_t{sample == nullptr ? i : sample[i]} * dim;
  }
};

// Groups of equal rows (positions ascending). Only the first of a group is a node of the graph; the others hang on it
// in a chain, so that a thousand copies of a vector cost no more than a thousand links and cut nothing off.
inline std::vector<std::vector<std::uint32_t>> equal_rows(const Level& level) {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> hashes(level.n);
  const std::size_t words = level.stride / 2;
  for (std::uint32_t p = 0; p < level.n; ++p) {
    std::uint64_t hash = 0x9e3779b97f4a7c15ull;
    for (std::size_t w = 0; w < words; ++w) {
      std::uint64_t word;
      std::memcpy(&word, level.row(p) + 2 * w, sizeof word);
      hash = std::rotl((hash ^ word) * 0xbf58476d1ce4e5b9ull, 29);
    }
    hashes[p] = {hash, p};
  }
  std::sort(hashes.begin(), hashes.end());
  std::vector<std::vector<std::uint32_t>> groups;
  for (std::size_t i = 0, end = 0; i < hashes.size(); i = end) {
    for (end = i + 1; end < hashes.size() && hashes[end].first == hashes[i].first;) ++end;
    if (end - i == 1) continue;
    std::vector<std::vector<std::uint32_t>> here;  // several only if hashes collide
    for (std::size_t j = i; j < end; ++j) {
      const std::uint32_t p = hashes[j].second;
      const auto same = [&](const auto& group) {
        return std::memcmp(level.row(group[0]), level.row(p), level.stride * sizeof(float)) == 0;
      };
      // A wilful collision of many hashes would make this quadratic: only the last few groups are looked at.
      const auto from = here.size() > 64 ? here.end() - 64 : here.begin();
      const auto found = std::find_if(from, here.end(), same);
      if (found == here.end())
        here.push_back({p});
      else
        found->push_back(p);
    }
    for (auto& group : here)
      if (group.size() > 1) groups.push_back(std::move(group));
  }
  return groups;
}

class HierarchyBuilder {
 public:
  HierarchyBuilder(const Settings& settings, Scratches& scratches, Workers& workers)
      : settings_(settings), scratches_(scratches), workers_(workers),
        stride_(round_up(settings.dim, kPadding)) {}

  std::uint64_t computed() const { return computed_; }

  // Layers bottom first, as the user gives them; levels top first, as they are searched.
  std::vector<Level> build(const std::vector<Matrix>& layers) {
    std::vector<Level> levels;
    std::uint32_t above = 0;
    for (std::size_t l = layers.size(); l-- > 0;) {
      const auto n = static_cast<std::uint32_t>(layers[l].rows);
      // A layer much larger than the one above it gets samples of itself in between, each sixteen times smaller.
      std::vector<std::uint32_t> sizes;
      for (std::uint32_t size = n; size > kHiddenFrom && size / kHiddenGap > above && size / kHiddenShrink > above;)
        sizes.push_back(size /= kHiddenShrink);
      std::vector<std::uint32_t> order;
      if (!sizes.empty()) order = permutation(n, settings_.seed ^ (0x5851f42d4c957f2dull * (l + 1)));
      for (std::size_t i = sizes.size(); i-- > 0;)
        append(levels, Source{layers[l].data, sizes[i], order.data()}, -1);
      append(levels, Source{layers[l].data, n, nullptr}, static_cast<std::int32_t>(l));
      above = n;
    }
    return levels;
  }

  // A copy of level `at` with more rows. `changed` gets the new links of the levels above and below.
  struct Added {
    Level level;
    Array<std::uint32_t> down_above, link_above;
    std::size_t real_above = 0;
  };
  Added add(const std::vector<Level>& levels, std::size_t at, const Matrix& rows) {
    const Level& old = levels[at];
    Added added;
    Level& level = added.level;
    level.layer = old.layer;
    level.n = old.n + static_cast<std::uint32_t>(rows.rows);
    level.stride = stride_;
    level.entry = old.entry;
    level.byte_stride = old.byte_stride;
    copy(level.vectors, old.vectors, level.n * stride_);
    copy(level.ids, old.ids, level.n);
    copy(level.offsets, old.offsets, old.offsets.size());
    copy(level.targets, old.targets, old.targets.size());
    copy(level.bytes, old.bytes, old.bytes.size());
    copy(level.scale, old.scale, old.scale.size());
    copy(level.norms, old.norms, old.norms.size());
    copy(level.halves, old.halves, old.halves.size());
    for (std::uint32_t p = old.n; p < level.n; ++p) {
      read_row(settings_, rows.data + std::size_t{p - old.n} * settings_.dim, level.vectors.data() + p * stride_,
               stride_);
      level.ids[p] = p;
    }
    level.number();
    quantise(level, settings_, old.n);

    // Where the new rows belong: below the nearest nodes of the level above.
    const std::size_t each = at == 0 ? 0 : settings_.entries;
    std::vector<std::uint32_t> hints(level.n * each);
    if (each != 0) {
      const std::vector<Key> keys = parents(levels, at, level.vectors.data() + old.n * stride_, rows.rows);
      for (std::size_t i = 0; i < rows.rows; ++i)
        for (std::size_t e = 0; e < each; ++e) {
          Key key = keys[i * each + e];
          if (key == kNoKey) key = keys[i * each];
          hints[(old.n + i) * each + e] = levels[at - 1].down[levels[at - 1].positions[position_of(key)]];
        }
    }
    GraphBuilder graph(settings_, level, scratches_, workers_);
    graph.take_compact(old.n);
    graph.set_hints(hints.data(), each);
    link_level(graph, level, old.n, at);

    Level ends;  // of the links down and up: the new rows alone
    if (at + 1 < levels.size()) {
      copy(level.down, old.down, level.n);
      copy(level.link, old.link, old.link.empty() ? 0 : level.n);
      std::vector<std::uint32_t> starts(rows.rows);
      for (std::size_t i = 0; i < rows.rows; ++i) starts[i] = levels[at + 1].entry;
      computed_ += nearest_below(settings_, level, old.n, levels[at + 1], starts.data(), level.down.data() + old.n,
                                 scratches_, workers_);
      if (!level.link.empty()) {
        std::size_t below = at + 1;
        while (levels[below].hidden()) ++below;
        for (std::size_t i = 0; i < rows.rows; ++i) starts[i] = levels[below].entry;
        computed_ += nearest_below(settings_, level, old.n, levels[below], starts.data(), level.link.data() + old.n,
                                   scratches_, workers_);
      }
    }
    if (at > 0) {
      copy(added.down_above, levels[at - 1].down, levels[at - 1].n);
      nearer(levels[at - 1], level, old.n, added.down_above);
      std::size_t real = at - 1;
      while (real > 0 && levels[real].hidden()) --real;
      if (!levels[real].hidden() && real != at - 1) {
        added.real_above = real;
        copy(added.link_above, levels[real].link, levels[real].n);
        nearer(levels[real], level, old.n, added.link_above);
      }
    }
    connect(graph, level);
    computed_ += graph.computed();
    return added;
  }

 private:
  static constexpr std::uint32_t kHiddenFrom = 1024, kHiddenShrink = 16, kHiddenGap = 64;
  static constexpr std::size_t kDescentEf = 8;

  template <class T>
  static void copy(Array<T>& to, const Array<T>& from, std::size_t size) {
    to = Array<T>(size);
    if (!from.empty()) std::memcpy(to.data(), from.data(), std::min(size, from.size()) * sizeof(T));
  }

  // The nearest `entries` nodes (keys of ids) of level at - 1 to some rows.
  std::vector<Key> parents(const std::vector<Level>& levels, std::size_t at, const float* rows, std::size_t count) {
    std::vector<Wanted> wanted(at, Wanted{kDescentEf, 0, nullptr});
    std::vector<Key> keys(count * settings_.entries);
    wanted.back().keep = settings_.entries;
    wanted.back().keys = keys.data();
    Descent descent(settings_, levels, scratches_, workers_);
    for (const Counted& counted : descent.run(rows, count, wanted)) computed_ += counted.graph + counted.exact;
    return keys;
  }

  void append(std::vector<Level>& levels, const Source& source, std::int32_t layer) {
    const std::size_t at = levels.size(), each = at == 0 ? 0 : settings_.entries;
    const std::uint32_t n = source.n;
    // The order of the nodes: by their nearest node above, then as given.
    std::vector<std::uint32_t> above(n * each);
    constexpr std::size_t kChunk = 8192;
    for (std::size_t begin = 0; each != 0 && begin < n; begin += kChunk) {
      const std::size_t count = std::min<std::size_t>(kChunk, n - begin);
      Array<float> rows(count * stride_);
      for (std::size_t i = 0; i < count; ++i)
        read_row(settings_, source.row(static_cast<std::uint32_t>(begin + i), settings_.dim), rows.data() + i * stride_,
                 stride_);
      const std::vector<Key> keys = parents(levels, at, rows.data(), count);
      for (std::size_t i = 0; i < count; ++i)
        for (std::size_t e = 0; e < each; ++e) {
          Key key = keys[i * each + e];
          if (key == kNoKey) key = keys[i * each];  // fewer nodes above than entries
          above[(begin + i) * each + e] = levels[at - 1].positions[position_of(key)];
        }
    }
    std::vector<std::uint32_t> order(n);
    std::iota(order.begin(), order.end(), 0u);
    if (each != 0)
      std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return std::pair(above[a * each], a) < std::pair(above[b * each], b);
      });

    levels.emplace_back();
    Level& level = levels.back();
    level.layer = layer;
    level.n = n;
    level.stride = stride_;
    level.vectors = Array<float>(n * stride_);
    level.ids = Array<std::uint32_t>(n);
    workers_.run(n, 1024, [&](std::size_t begin, std::size_t end, unsigned) {
      for (std::size_t p = begin; p < end; ++p)
        read_row(settings_, source.row(order[p], settings_.dim), level.vectors.data() + p * stride_, stride_);
    });
    for (std::uint32_t p = 0; p < n; ++p) level.ids[p] = layer < 0 ? p : order[p];
    level.number();
    quantise(level, settings_);

    // Under a node above lie the positions from first[node] on.
    std::vector<std::uint32_t> first, hints(n * each);
    if (each != 0) {
      first.assign(levels[at - 1].n, 0);
      std::uint32_t p = 0;
      for (std::uint32_t u = 0; u < levels[at - 1].n; ++u) {
        while (p < n && above[order[p] * each] < u) ++p;
        first[u] = std::min(p, n - 1);
      }
      for (std::uint32_t q = 0; q < n; ++q)
        for (std::size_t e = 0; e < each; ++e) hints[q * each + e] = first[above[order[q] * each + e]];
    }
    GraphBuilder graph(settings_, level, scratches_, workers_);
    graph.set_hints(hints.data(), each);
    link_level(graph, level, 0, at);
    if (at > 0) {
      Level& upper = levels[at - 1];
      upper.down = Array<std::uint32_t>(upper.n);
      computed_ += nearest_below(settings_, upper, 0, level, first.data(), upper.down.data(), scratches_, workers_);
      level.entry = upper.down[upper.entry];
      std::size_t real = at - 1;
      while (real > 0 && levels[real].hidden()) --real;
      if (!level.hidden() && !levels[real].hidden() && real != at - 1) {
        std::vector<std::uint32_t> starts(levels[real].n);
        for (std::uint32_t u = 0; u < levels[real].n; ++u) {
          starts[u] = u;
          for (std::size_t l = real; l < at; ++l) starts[u] = levels[l].down[starts[u]];
        }
        levels[real].link = Array<std::uint32_t>(levels[real].n);
        computed_ += nearest_below(settings_, levels[real], 0, level, starts.data(), levels[real].link.data(),
                                   scratches_, workers_);
      }
    }
    connect(graph, level);
    computed_ += graph.computed();
  }

  // The graph within the level, from position `from` on.
  void link_level(GraphBuilder& graph, const Level& level, std::uint32_t from, std::size_t at) {
    std::vector<std::uint8_t> copies(level.n, 0);
    for (const auto& group : equal_rows(level))
      for (std::size_t i = 1; i < group.size(); ++i) {
        copies[group[i]] = 1;
        if (group[i] < from) continue;
        graph.add_edge(group[i - 1], group[i]);
        graph.add_edge(group[i], group[0]);
      }
    std::vector<std::uint32_t> order = permutation(level.n - from, settings_.seed + 0x2545f4914f6cdd1dull * (at + 1));
    for (std::uint32_t& p : order) p += from;
    std::erase_if(order, [&](std::uint32_t p) { return copies[p] != 0; });
    graph.insert(order);
    graph.thin();
    graph.compact();
  }

  // Links of `upper` go to rows [from, n) of `level` where those are nearer.
  void nearer(const Level& upper, const Level& level, std::uint32_t from, Array<std::uint32_t>& links) {
    const auto scratch = scratches_.take();
    scratch->computed = 0;
    for (std::uint32_t u = 0; u < upper.n; ++u) {
      const FloatDistances distances(kernels(), settings_, level, upper.row(u));
      float now;
      distances(&links[u], 1, &now, *scratch);
      Key best = key_of(now, links[u]);
      for (std::uint32_t p = from; p < level.n; ++p) {
        float distance;
        distances(&p, 1, &distance, *scratch);
        best = std::min(best, key_of(distance, p));
      }
      links[u] = position_of(best);
    }
    computed_ += scratch->computed;
  }

  // Every node is reached from the entry: what is not gets a link from a node near it that is.
  void connect(GraphBuilder& graph, Level& level) {
    std::vector<std::uint8_t> reached(level.n, 0), given(level.n, 0);
    std::vector<Edge> added;
    std::vector<std::uint32_t> queue;
    const auto spread = [&](std::uint32_t from) {
      queue.assign(1, from);
      reached[from] = 1;
      while (!queue.empty()) {
        const std::uint32_t p = queue.back();
        queue.pop_back();
        for (std::uint32_t i = 0; i < level.degree(p); ++i) {
          const std::uint32_t next = level.neighbours(p)[i];
          if (reached[next]) continue;
          reached[next] = 1;
          queue.push_back(next);
        }
      }
    };
    spread(level.entry);
    std::vector<std::uint32_t> lost;
    for (std::uint32_t p = 0; p < level.n; ++p)
      if (!reached[p]) lost.push_back(p);
    if (lost.empty()) return;
    constexpr std::size_t kNear = 16;
    std::vector<std::uint32_t> near(lost.size() * kNear, level.entry);
    std::vector<std::unique_ptr<Scratch>> scratches(workers_.size());
    for (auto& scratch : scratches) {
      scratch = scratches_.take();
      scratch->computed = 0;
    }
    workers_.run(lost.size(), 16, [&](std::size_t begin, std::size_t end, unsigned worker) {
      Scratch& s = *scratches[worker];
      for (std::size_t i = begin; i < end; ++i) {
        traverse(CompactLists{level}, level.n, FloatDistances(kernels(), settings_, level, level.row(lost[i])),
                 &level.entry, 1, std::max<std::size_t>(kNear, settings_.ef_construction), s);
        for (std::size_t j = 0; j < std::min(kNear, s.pool.size()); ++j)
          near[i * kNear + j] = position_of(s.pool.keys()[j]);
      }
    });
    for (auto& scratch : scratches) {
      computed_ += scratch->computed;
      scratches_.give(std::move(scratch));
    }
    std::uint32_t last = level.entry;
    for (std::size_t i = 0; i < lost.size(); ++i) {
      if (reached[lost[i]]) continue;
      std::uint32_t from = last;  // if all that are near have given enough links: behind the node attached before
      for (std::size_t j = 0; j < kNear; ++j)
        if (given[near[i * kNear + j]] < 4) {
          from = near[i * kNear + j];
          break;
        }
      ++given[from];
      graph.add_edge(from, lost[i]);
      graph.add_edge(lost[i], from);
      spread(lost[i]);
      last = lost[i];
    }
    graph.compact();
  }

  const Settings& settings_;
  Scratches& scratches_;
  Workers& workers_;
  std::size_t stride_;
  std::uint64_t computed_ = 0;
};

}  // namespace chnsw
