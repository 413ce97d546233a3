// The search of a hierarchy from the top down (ArchRAG's Algorithm 2): the links of the best nodes found in one level
// are where the search of the next one starts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "common.hpp"
#include "exact.hpp"
#include "kernels.hpp"
#include "level.hpp"
#include "traverse.hpp"
#include "workers.hpp"

namespace chnsw {

// What is wanted of one level: the `keep` best keys (their position field holds the *user's id*) of a search with a
// pool of `ef`, written to keys[query * keep + rank], kNoKey where there are fewer.
struct Wanted {
  std::size_t ef = 1;
  std::size_t keep = 0;
  Key* keys = nullptr;
};

struct Counted {
  std::uint64_t graph = 0, exact = 0;  // distances
};

class Descent {
 public:
  Descent(const Settings& settings, const std::vector<Level>& levels, Scratches& scratches, Workers& workers)
      : settings_(settings), levels_(levels), scratches_(scratches), workers_(workers) {}

  // Searches levels [0, wanted.size()) for `count` queries: rows of `stride` values, padded, normalised for cosine.
  // Returns the distances computed in each.
  std::vector<Counted> run(const float* queries, std::size_t count, const std::vector<Wanted>& wanted) {
    std::vector<Counted> counted(wanted.size());
    starts_.assign(count * settings_.entries, 0);
    start_counts_.assign(count, 0);
    order_.resize(count);
    std::iota(order_.begin(), order_.end(), 0u);
    std::vector<std::unique_ptr<Scratch>> scratches(workers_.size());
    for (auto& scratch : scratches) scratch = scratches_.take();
    for (std::size_t l = 0; l < wanted.size(); ++l) {
      bool exact = searched_exactly(levels_[l]);
      for (auto& scratch : scratches) scratch->computed = 0;
      if (!exact && may_pay_exactly(levels_[l], wanted[l], count)) {
        workers_.run(kProbes, 1, [&](std::size_t begin, std::size_t, unsigned worker) {
          const auto query = static_cast<std::uint32_t>(begin * count / kProbes);
          search_graph(l, queries, query, wanted[l], *scratches[worker], true);
        });
        for (auto& scratch : scratches) counted[l].graph += std::exchange(scratch->computed, 0);
        exact = counted[l].graph * kGraphCost > std::uint64_t{levels_[l].n} * kProbes;
      }
      // Queries that start near each other follow each other, so that what one has read the next finds in the cache.
      if (count > 1 && l > 0 && !exact)
        std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
          return std::pair(starts_[a * settings_.entries], a) < std::pair(starts_[b * settings_.entries], b);
        });
      const std::size_t share = (count + workers_.size() - 1) / workers_.size();
      workers_.run(count, exact ? std::min(kExactQueries, share) : std::clamp<std::size_t>(share / 4, 1, 64),
                   [&](std::size_t begin, std::size_t end, unsigned worker) {
                     Scratch& s = *scratches[worker];
                     if (exact)
                       search_exactly(l, queries, begin, end, wanted[l], s);
                     else
                       for (std::size_t i = begin; i < end; ++i)
                         search_graph(l, queries, order_[i], wanted[l], s, false);
                   });
      for (auto& scratch : scratches) (exact ? counted[l].exact : counted[l].graph) += scratch->computed;
    }
    for (auto& scratch : scratches) scratches_.give(std::move(scratch));
    return counted;
  }

  bool searched_exactly(const Level& level) const { return level.n <= settings_.exact_below; }

 private:
  // A large batch asks a few of its queries what the graph costs them, and is compared with every row where that is
  // less: the upper layers with a large ef, and data without structure. `exact_below` 0 turns this off.
  static constexpr std::size_t kProbes = 8, kLargeBatch = 128;
  static constexpr std::uint32_t kQuantisedFrom = 1024;
  static constexpr std::size_t kRankedMore = 4;  // nodes ranked again at a time
  // A batch computes about four distances side by side while the graph computes one (two where that reads bytes). One
  // of the graph counts as two, so that what a batch compares stays below twice what the graph would have compared.
  static constexpr std::uint64_t kGraphCost = 2;
  bool may_pay_exactly(const Level& level, const Wanted& wanted, std::size_t count) const {
    return settings_.exact_below != 0 && count >= kLargeBatch &&
           level.n < kGraphCost * 2 * settings_.m * (wanted.ef + settings_.entries);
  }

  void search_exactly(std::size_t l, const float* queries, std::size_t begin, std::size_t end, const Wanted& wanted,
                      Scratch& s) {
    const Level& level = levels_[l];
    const std::size_t count = end - begin;
    const std::size_t keep = std::min<std::size_t>(level.n, std::max<std::size_t>(wanted.keep, settings_.entries));
    exact_block(
        kernels(), settings_.metric, queries + begin * level.stride, count, level.vectors.data(), level.n, level.stride,
        keep, [&](std::size_t row) { return level.ids[row]; }, [](std::size_t, std::size_t) { return false; }, s);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t query = begin + i;
      const Pool& pool = s.pools[i];
      for (std::size_t r = 0; r < wanted.keep; ++r)
        wanted.keys[query * wanted.keep + r] = r < pool.size() ? pool.keys()[r] : kNoKey;
      start_counts_[query] = static_cast<std::uint32_t>(std::min<std::size_t>(pool.size(), settings_.entries));
      if (level.down.empty()) continue;
      for (std::size_t e = 0; e < start_counts_[query]; ++e)
        starts_[query * settings_.entries + e] = level.down[level.positions[position_of(pool.keys()[e])]];
    }
  }

  void search_graph(std::size_t l, const float* queries, std::uint32_t query, const Wanted& wanted, Scratch& s,
                    bool probe) {
    const Level& level = levels_[l];
    const float* const vector = queries + query * level.stride;
    std::uint32_t* const starts = starts_.data() + query * settings_.entries;
    if (start_counts_[query] == 0) {
      starts[0] = level.entry;
      start_counts_[query] = 1;
    }
    const std::size_t ef = std::max<std::size_t>({wanted.ef, wanted.keep, settings_.entries});
    const Kernels& k = kernels();
    const CompactLists lists{level};
    const FloatDistances exact(k, settings_, level, vector);
    // A small level stays in the cache as it is: quantising the query and ranking again would cost more than they save.
    if (settings_.dtype == Dtype::float32 || (level.n < kQuantisedFrom && settings_.exact_below != 0)) {
      traverse(lists, level.n, exact, starts, start_counts_[query], ef, s);
    } else {
      if (settings_.dtype == Dtype::float16)
        traverse(lists, level.n, HalfDistances(k, settings_, level, vector), starts, start_counts_[query], ef, s);
      else
        traverse(lists, level.n, ByteDistances(k, settings_, level, vector, s), starts, start_counts_[query], ef, s);
      rank_again(exact, std::max<std::size_t>(wanted.keep, settings_.entries), s);
    }
    if (probe) return;
    const Key* const keys = s.pool.keys();
    const std::size_t size = s.pool.size();
    if (wanted.keep != 0) {  // by (distance, id) now; nodes at one distance may have to change places
      Key* const out = wanted.keys + query * wanted.keep;
      std::size_t filled = 0;
      for (std::size_t i = 0; i < size; ++i) {
        if (i >= wanted.keep && keys[i] >> 32 != keys[wanted.keep - 1] >> 32) break;
        const Key key = key_of(distance_of(keys[i]), level.ids[position_of(keys[i])]);
        std::size_t at = filled;
        while (at > 0 && out[at - 1] > key) --at;
        if (at == wanted.keep) continue;
        if (filled < wanted.keep) ++filled;
        for (std::size_t j = filled - 1; j > at; --j) out[j] = out[j - 1];
        out[at] = key;
      }
      for (; filled < wanted.keep; ++filled) out[filled] = kNoKey;
    }
    start_counts_[query] = static_cast<std::uint32_t>(std::min<std::size_t>(size, settings_.entries));
    if (level.down.empty()) return;
    for (std::size_t e = 0; e < start_counts_[query]; ++e) starts[e] = level.down[position_of(keys[e])];
  }

  // The pool's nodes by their float32 distances: as many of them as can still be among the `keep` best. The quantised
  // distances differ from the true ones by a constant of the query (l2) and an error, which the nodes ranked so far
  // show: what lies behind the keep-th of them by more than that is left out.
  static void rank_again(const FloatDistances& distances, std::size_t keep, Scratch& s) {
    const std::size_t size = s.pool.size();
    s.reserve(size);
    Key* const keys = s.pool.keys();
    float lowest = std::numeric_limits<float>::infinity(), highest = -lowest;
    std::size_t done = 0;
    while (done < size) {
      const std::size_t count = std::min(size - done, done == 0 ? keep + kRankedMore : kRankedMore);
      for (std::size_t i = 0; i < count; ++i) s.rows[i] = position_of(keys[done + i]);
      distances(s.rows.data(), count, s.distances.data(), s);
      for (std::size_t i = 0; i < count; ++i) {
        const float difference = s.distances[i] - distance_of(keys[done + i]);
        lowest = std::min(lowest, difference);
        highest = std::max(highest, difference);
        keys[done + i] = key_of(s.distances[i], s.rows[i]);
      }
      done += count;
      std::sort(keys, keys + done);
      if (done == size || done < keep) continue;
      // The differences still to come are taken to be at least `lowest` less half the spread.
      const float least = lowest - 0.5f * (highest - lowest);
      if (distance_of(keys[done]) + least > distance_of(keys[keep - 1])) break;
    }
    s.pool.cut(done);
  }

  const Settings& settings_;
  const std::vector<Level>& levels_;
  Scratches& scratches_;
  Workers& workers_;
  std::vector<std::uint32_t> starts_, start_counts_, order_;
};

}  // namespace chnsw
