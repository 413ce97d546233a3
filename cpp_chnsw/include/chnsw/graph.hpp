// The graph of one level, built by inserting batches of nodes (HNSW's level 0, with nothing filled up).
//
// A batch searches the graph as it stood before the batch, in parallel, and itself, exactly; then every node writes its
// list, and then every target of new links takes them in, in parallel again. No step depends on the order in which
// threads run, so the same data and seed give the same graph.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "common.hpp"
#include "exact.hpp"
#include "kernels.hpp"
#include "level.hpp"
#include "traverse.hpp"
#include "workers.hpp"

namespace chnsw {

using Edge = std::pair<std::uint32_t, std::uint32_t>;

// Lists under construction: 2m slots a node.
struct SlotLists {
  std::size_t width = 0;
  std::vector<std::uint32_t> slots;
  std::vector<std::uint32_t> counts;

  SlotLists(std::uint32_t n, std::size_t slots_each) : width(slots_each), slots(n * slots_each), counts(n) {}
  const std::uint32_t* list(std::uint32_t position) const { return slots.data() + position * width; }
  std::uint32_t size(std::uint32_t position) const { return counts[position]; }
  void set(std::uint32_t position, const std::uint32_t* list, std::size_t count) {
    std::copy(list, list + count, slots.data() + position * width);
    counts[position] = static_cast<std::uint32_t>(count);
  }
};

class GraphBuilder {
 public:
  GraphBuilder(const Settings& settings, Level& level, Scratches& scratches, Workers& workers)
      : settings_(settings), level_(level), workers_(workers), lists_(level.n, 2 * std::size_t{settings.m}),
        scratches_(workers.size()), source_(scratches), is_in_(level.n, 0), changed_(level.n, 0) {
    for (auto& scratch : scratches_) {
      scratch = scratches.take();
      scratch->computed = 0;
    }
  }
  ~GraphBuilder() {
    for (auto& scratch : scratches_) source_.give(std::move(scratch));
  }
  GraphBuilder(const GraphBuilder&) = delete;
  GraphBuilder& operator=(const GraphBuilder&) = delete;

  // Starts of the search for the place of a node: `hints[p * each …]` are positions of this level near p (any).
  void set_hints(const std::uint32_t* hints, std::size_t each) {
    hints_ = hints;
    hints_each_ = each;
  }

  // Takes the nodes that are in the level's compressed rows as inserted already.
  void take_compact(std::uint32_t count) {
    for (std::uint32_t p = 0; p < count; ++p) {
      const std::size_t kept = std::min<std::size_t>(level_.degree(p), lists_.width);
      lists_.set(p, level_.neighbours(p), kept);
      for (std::size_t i = kept; i < level_.degree(p); ++i) extra_.emplace_back(p, level_.neighbours(p)[i]);
      inserted_.push_back(p);
      is_in_[p] = 1;
    }
  }

  // Inserts nodes in this order.
  void insert(const std::vector<std::uint32_t>& order) {
    std::size_t done = 0;
    std::vector<std::uint32_t> batch;
    while (done < order.size()) {
      const std::size_t size = std::clamp<std::size_t>(inserted_.size() / 2, kFirstBatch, kLastBatch);
      const std::size_t end = std::min(order.size(), done + size);
      batch.assign(order.begin() + static_cast<std::ptrdiff_t>(done), order.begin() + static_cast<std::ptrdiff_t>(end));
      std::sort(batch.begin(), batch.end());
      insert_batch(batch);
      done = end;
    }
  }

  // Prunes each list that has changed, the links that others made to the node included: what the heuristic would not
  // have chosen costs distances in every search. The nearest few stay in any case.
  void thin() {
    workers_.run(level_.n, 256, [&](std::size_t begin, std::size_t end, unsigned worker) {
      Scratch& s = *scratches_[worker];
      for (std::size_t p = begin; p < end; ++p) {
        const auto position = static_cast<std::uint32_t>(p);
        const std::size_t count = lists_.size(position);
        if (!changed_[p] || count <= kNearestKept) continue;
        s.reserve(count);
        std::copy(lists_.list(position), lists_.list(position) + count, s.rows.begin());
        lists_.set(position, s.rows.data(), prune_rows(position, count, lists_.width, s));
      }
    });
  }

  void add_edge(std::uint32_t from, std::uint32_t to) { extra_.emplace_back(from, to); }

  // Writes the level's compressed rows: lists by position, each neighbour once.
  void compact() {
    std::sort(extra_.begin(), extra_.end());
    level_.offsets = Array<std::uint64_t>(std::size_t{level_.n} + 1);
    std::vector<std::uint32_t> row;
    std::vector<std::uint32_t> all;
    all.reserve(std::size_t{level_.n} * 16);
    auto next = extra_.begin();
    for (std::uint32_t p = 0; p < level_.n; ++p) {
      row.assign(lists_.list(p), lists_.list(p) + lists_.size(p));
      for (; next != extra_.end() && next->first == p; ++next) row.push_back(next->second);
      std::sort(row.begin(), row.end());
      row.erase(std::unique(row.begin(), row.end()), row.end());
      all.insert(all.end(), row.begin(), row.end());
      level_.offsets[p + 1] = all.size();
    }
    level_.targets = Array<std::uint32_t>(all.size());
    std::copy(all.begin(), all.end(), level_.targets.begin());
  }

  std::uint64_t computed() const {
    std::uint64_t sum = 0;
    for (const auto& scratch : scratches_) sum += scratch->computed;
    return sum;
  }

 private:
  static constexpr std::size_t kFirstBatch = 16, kLastBatch = 512;
  static constexpr std::size_t kNearestKept = 4;  // links of a node to its nearest neighbours that no pruning takes
  static constexpr std::size_t kExactInserted = 4096;  // up to so many inserted nodes are all compared

  void insert_batch(const std::vector<std::uint32_t>& batch) {
    const std::size_t stride = level_.stride;
    Array<float> vectors(batch.size() * stride);
    for (std::size_t i = 0; i < batch.size(); ++i)
      std::memcpy(vectors.data() + i * stride, level_.row(batch[i]), stride * sizeof(float));
    find_nearest_inserted();
    // Of a batch that is small beside the graph few are among the nearest.
    const std::size_t keep = inserted_.size() < 8 * kLastBatch
                                 ? settings_.ef_construction
                                 : std::min<std::size_t>(settings_.ef_construction, 32);
    workers_.run(batch.size(), 32, [&](std::size_t begin, std::size_t end, unsigned worker) {
      Scratch& s = *scratches_[worker];
      exact_block(
          kernels(), settings_.metric, vectors.data() + begin * stride, end - begin, vectors.data(), batch.size(),
          stride, keep, [&](std::size_t row) { return batch[row]; },
          [&](std::size_t i, std::size_t row) { return begin + i == row; }, s);
      for (std::size_t i = begin; i < end; ++i) place(batch[i], s.pools[i - begin], s);
    });
    for (const std::uint32_t p : batch) {
      is_in_[p] = 1;
      inserted_.push_back(p);
    }
    take_links(batch);
  }

  // The inserted node next before and after each position: near in the hierarchy, as positions are.
  void find_nearest_inserted() {
    before_.resize(level_.n);
    after_.resize(level_.n);
    std::uint32_t last = kNone;
    for (std::uint32_t p = 0; p < level_.n; ++p) before_[p] = last = is_in_[p] ? p : last;
    last = kNone;
    for (std::uint32_t p = level_.n; p-- > 0;) after_[p] = last = is_in_[p] ? p : last;
  }

  // Candidates among the inserted and the batch, pruned: the node's own list.
  void place(std::uint32_t position, const Pool& in_batch, Scratch& s) {
    const FloatDistances distances(kernels(), settings_, level_, level_.row(position));
    if (inserted_.size() <= kExactInserted) {
      s.pool.start(settings_.ef_construction);
      s.reserve(inserted_.size());
      distances(inserted_.data(), inserted_.size(), s.distances.data(), s);
      for (std::size_t i = 0; i < inserted_.size(); ++i) {
        const Key key = key_of(s.distances[i], inserted_[i]);
        if (s.pool.takes(key)) s.pool.insert(key);
      }
    } else {
      std::uint32_t starts[2 + 64];
      std::size_t count = 0;
      const auto add = [&](std::uint32_t start) {
        if (start != kNone) starts[count++] = start;
      };
      add(before_[position]);
      add(after_[position]);
      for (std::size_t i = 0; i < hints_each_; ++i) {
        const std::uint32_t hint = hints_[position * hints_each_ + i];
        add(before_[hint] != kNone ? before_[hint] : after_[hint]);
      }
      traverse(lists_, level_.n, distances, starts, count, settings_.ef_construction, s);
    }
    for (std::size_t i = 0; i < in_batch.size(); ++i) {
      if (!s.pool.takes(in_batch.keys()[i])) break;
      s.pool.insert(in_batch.keys()[i]);
    }
    std::uint32_t kept[kMaxDegreeSetting];
    const std::size_t count = prune(s.pool.keys(), s.pool.size(), settings_.m, kept, s);
    lists_.set(position, kept, count);
    changed_[position] = 1;
  }

  // Prunes the first `count` of s.rows, any neighbours of `position`, in place; returns how many are left.
  std::size_t prune_rows(std::uint32_t position, std::size_t count, std::size_t most, Scratch& s) const {
    const FloatDistances distances(kernels(), settings_, level_, level_.row(position));
    distances(s.rows.data(), count, s.distances.data(), s);
    s.keys.clear();
    for (std::size_t i = 0; i < count; ++i) s.keys.push_back(key_of(s.distances[i], s.rows[i]));
    std::sort(s.keys.begin(), s.keys.end());
    return prune(s.keys.data(), count, most, s.rows.data(), s, kNearestKept);
  }

  // HNSW's heuristic (Algorithm 4): a candidate is kept if it is nearer to the node than to everything kept so far.
  // The first `least` are kept without asking.
  std::size_t prune(const Key* candidates, std::size_t count, std::size_t most, std::uint32_t* kept, Scratch& s,
                    std::size_t least = 0) const {
    std::size_t size = 0;
    for (std::size_t i = 0; i < count && size < most; ++i) {
      const std::uint32_t candidate = position_of(candidates[i]);
      const float own = distance_of(candidates[i]);
      const FloatDistances distances(kernels(), settings_, level_, level_.row(candidate));
      bool good = true;
      for (std::size_t j = 0; size >= least && good && j < size; j += 4) {
        float out[4];
        const std::size_t group = std::min<std::size_t>(4, size - j);
        distances(kept + j, group, out, s);
        for (std::size_t g = 0; g < group; ++g) good = good && !(out[g] < own);
      }
      if (good) kept[size++] = candidate;
    }
    return size;
  }

  // Links of the batch, taken in by their targets.
  void take_links(const std::vector<std::uint32_t>& batch) {
    edges_.clear();
    for (const std::uint32_t p : batch)
      for (std::uint32_t i = 0; i < lists_.size(p); ++i) edges_.emplace_back(lists_.list(p)[i], p);
    std::sort(edges_.begin(), edges_.end());
    groups_.clear();
    for (std::size_t i = 0; i < edges_.size(); ++i)
      if (i == 0 || edges_[i].first != edges_[i - 1].first) groups_.push_back(i);
    groups_.push_back(edges_.size());
    workers_.run(groups_.size() - 1, 16, [&](std::size_t begin, std::size_t end, unsigned worker) {
      for (std::size_t g = begin; g < end; ++g) take_in(groups_[g], groups_[g + 1], *scratches_[worker]);
    });
  }

  void take_in(std::size_t begin, std::size_t end, Scratch& s) {
    const std::uint32_t target = edges_[begin].first;
    const std::size_t had = lists_.size(target);
    s.reserve(had + end - begin);
    std::copy(lists_.list(target), lists_.list(target) + had, s.rows.begin());
    std::size_t count = had;
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint32_t source = edges_[i].second;
      if (std::find(lists_.list(target), lists_.list(target) + had, source) == lists_.list(target) + had)
        s.rows[count++] = source;
    }
    if (count > lists_.width) count = prune_rows(target, count, lists_.width, s);
    changed_[target] = 1;
    lists_.set(target, s.rows.data(), count);
  }

  static constexpr std::uint32_t kNone = 0xffffffffu;
  const Settings& settings_;
  Level& level_;
  Workers& workers_;
  SlotLists lists_;
  std::vector<std::unique_ptr<Scratch>> scratches_;
  Scratches& source_;
  std::vector<std::uint8_t> is_in_, changed_;
  std::vector<std::uint32_t> inserted_, before_, after_;
  std::vector<Edge> edges_, extra_;
  std::vector<std::size_t> groups_;
  const std::uint32_t* hints_ = nullptr;
  std::size_t hints_each_ = 0;
};

}  // namespace chnsw
