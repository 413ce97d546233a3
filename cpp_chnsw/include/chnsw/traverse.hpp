// Best-first search in one level, and what it needs: distances to rows, a sorted pool, visited tags.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "array.hpp"
#include "common.hpp"
#include "kernels.hpp"
#include "level.hpp"

namespace chnsw {

// Which nodes a search has seen: a tag of one byte a node, so that a new search clears nothing 254 times of 255.
class Visited {
 public:
  void start(std::uint32_t n) {
    if (tags_.size() < n) {
      tags_.assign(n, 0);
      epoch_ = 0;
    }
    if (++epoch_ == 0) {
      std::fill(tags_.begin(), tags_.end(), std::uint8_t{0});
      epoch_ = 1;
    }
  }
  bool insert(std::uint32_t position) {
    if (tags_[position] == epoch_) return false;
    tags_[position] = epoch_;
    return true;
  }

 private:
  std::vector<std::uint8_t> tags_;
  std::uint8_t epoch_ = 0;
};

// The best so many keys, ascending.
class Pool {
 public:
  void start(std::size_t capacity) {
    capacity_ = capacity;
    size_ = 0;
    worst_ = kNoKey;
    if (keys_.size() < capacity + 1) keys_.resize(capacity + 1);
  }
  std::size_t size() const { return size_; }
  std::size_t capacity() const { return capacity_; }
  Key* keys() { return keys_.data(); }
  const Key* keys() const { return keys_.data(); }
  bool takes(Key key) const { return key < worst_; }
  // Puts a key that `takes` accepts where it belongs, and says where.
  std::size_t insert(Key key) {
    Key* const begin = keys_.data();
    std::size_t at = size_;
    if (size_ < 24) {
      while (at > 0 && begin[at - 1] > key) --at;
    } else {
      at = static_cast<std::size_t>(std::upper_bound(begin, begin + size_, key) - begin);
    }
    std::memmove(begin + at + 1, begin + at, (size_ - at) * sizeof(Key));
    begin[at] = key;
    if (size_ < capacity_) ++size_;
    if (size_ == capacity_) worst_ = begin[size_ - 1];
    return at;
  }
  // Forgets all but the first `size`.
  void cut(std::size_t size) { size_ = std::min(size_, size); }
  // No distance above it is taken.
  float bound() const { return size_ < capacity_ ? std::numeric_limits<float>::infinity() : distance_of(worst_); }

 private:
  std::vector<Key> keys_;
  std::size_t capacity_ = 0, size_ = 0;
  Key worst_ = kNoKey;
};

// Everything one thread needs to search; reused from query to query.
struct Scratch {
  Visited visited;
  Pool pool;
  std::vector<std::uint32_t> rows;  // unvisited neighbours
  std::vector<float> distances;
  std::vector<std::int32_t> sums;
  Array<std::int8_t> byte_query;
  std::vector<float> tile;
  std::vector<Key> keys;
  std::vector<Pool> pools;     // one a query of a block
  Array<float> block;          // the vectors of a block of queries
  std::uint64_t computed = 0;  // distances

  void reserve(std::size_t count) {
    if (rows.size() < count) {
      rows.resize(count);
      distances.resize(count);
      sums.resize(count);
    }
  }
};

// Scratches outlive a call, so that a search of one query allocates nothing.
class Scratches {
 public:
  std::unique_ptr<Scratch> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<Scratch>();
    auto scratch = std::move(free_.back());
    free_.pop_back();
    return scratch;
  }
  void give(std::unique_ptr<Scratch> scratch) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(scratch));
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    free_.clear();
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Scratch>> free_;
};

// Distances from one query to rows of a level, on the float32 vectors.
class FloatDistances {
 public:
  FloatDistances(const Kernels& k, const Settings& s, const Level& level, const float* query)
      : rows_(s.metric == Metric::l2 ? k.l2_rows : k.ip_rows), base_(level.vectors.data()), stride_(level.stride),
        query_(query) {}
  void operator()(const std::uint32_t* rows, std::size_t count, float* out, Scratch& scratch) const {
    rows_(query_, base_, stride_, rows, count, out);
    scratch.computed += count;
  }
  const char* address(std::uint32_t row) const { return reinterpret_cast<const char*>(base_ + row * stride_); }
  std::size_t row_bytes() const { return stride_ * sizeof(float); }

 private:
  Kernels::Rows rows_;
  const float* base_;
  std::size_t stride_;
  const float* query_;
};

class HalfDistances {
 public:
  HalfDistances(const Kernels& k, const Settings& s, const Level& level, const float* query)
      : rows_(s.metric == Metric::l2 ? k.l2_half : k.ip_half), base_(level.halves.data()), stride_(level.stride),
        query_(query) {}
  void operator()(const std::uint32_t* rows, std::size_t count, float* out, Scratch& scratch) const {
    rows_(query_, base_, stride_, rows, count, out);
    scratch.computed += count;
  }
  const char* address(std::uint32_t row) const { return reinterpret_cast<const char*>(base_ + row * stride_); }
  std::size_t row_bytes() const { return stride_ * sizeof(std::uint16_t); }

 private:
  Kernels::HalfRows rows_;
  const std::uint16_t* base_;
  std::size_t stride_;
  const float* query_;
};

// The query is multiplied by the scales and quantised by its own greatest value; l2 is up to the query's own norm.
class ByteDistances {
 public:
  ByteDistances(const Kernels& k, const Settings& s, const Level& level, const float* query, Scratch& scratch)
      : rows_(k.dot_byte), base_(level.bytes.data()), norms_(s.metric == Metric::l2 ? level.norms.data() : nullptr),
        stride_(level.byte_stride) {
    if (scratch.byte_query.size() < stride_) scratch.byte_query = Array<std::int8_t>(stride_);
    query_ = scratch.byte_query.data();
    constexpr std::size_t kLanes = 16;  // side by side, or each value would wait for the one before
    float lanes[kLanes] = {}, greatest = 0x1p-100f;
    const std::size_t whole = s.dim / kLanes * kLanes;
    const float* const scale = level.scale.data();
    for (std::size_t d = 0; d < whole; d += kLanes)
      for (std::size_t j = 0; j < kLanes; ++j) lanes[j] = greater(lanes[j], std::fabs(query[d + j] * scale[d + j]));
    for (const float lane : lanes) greatest = greater(greatest, lane);
    for (std::size_t d = whole; d < s.dim; ++d) greatest = greater(greatest, std::fabs(query[d] * scale[d]));
    const float inverse = 127.0f / greatest;
    std::int32_t sum = 0;
    std::int8_t* const bytes = scratch.byte_query.data();
    for (std::size_t d = 0; d < s.dim; ++d) {
      const auto byte = static_cast<std::int32_t>(round127(query[d] * scale[d] * inverse));
      bytes[d] = static_cast<std::int8_t>(byte);
      sum += byte;
    }
    std::memset(bytes + s.dim, 0, stride_ - s.dim);
    bias_ = 128 * sum;
    factor_ = (norms_ == nullptr ? -1.0f : -2.0f) * greatest / 127.0f;
  }
  void operator()(const std::uint32_t* rows, std::size_t count, float* out, Scratch& scratch) const {
    std::int32_t* const sums = scratch.sums.data();
    rows_(query_, base_, stride_, rows, count, sums);
    for (std::size_t i = 0; i < count; ++i) out[i] = factor_ * static_cast<float>(sums[i] - bias_);
    if (norms_ != nullptr)
      for (std::size_t i = 0; i < count; ++i) out[i] += norms_[rows[i]];
    scratch.computed += count;
  }
  const char* address(std::uint32_t row) const { return reinterpret_cast<const char*>(base_ + row * stride_); }
  std::size_t row_bytes() const { return stride_; }

 private:
  Kernels::ByteRows rows_;
  const std::uint8_t* base_;
  const float* norms_;
  std::size_t stride_;
  const std::int8_t* query_ = nullptr;
  std::int32_t bias_ = 0;
  float factor_ = 0;
};

// The lists of a finished level.
struct CompactLists {
  const Level& level;
  const std::uint32_t* list(std::uint32_t position) const { return level.neighbours(position); }
  std::uint32_t size(std::uint32_t position) const { return level.degree(position); }
};

inline void prefetch(const void* address) { __builtin_prefetch(address); }

// Best-first search with a pool of `ef` (Malkov and Yashunin's Algorithm 2, the pool being both their W and their C).
// Leaves the pool ascending; a key's lowest bit says that the node was expanded: all are, at the end.
template <class Lists, class Distances>
void traverse(const Lists& lists, std::uint32_t n, const Distances& distances, const std::uint32_t* starts,
              std::size_t start_count, std::size_t ef, Scratch& s) {
  s.visited.start(n);
  s.pool.start(ef);
  s.reserve(start_count);
  std::size_t count = 0;
  for (std::size_t i = 0; i < start_count; ++i)
    if (s.visited.insert(starts[i])) s.rows[count++] = starts[i];
  distances(s.rows.data(), count, s.distances.data(), s);
  for (std::size_t i = 0; i < count; ++i) {
    const Key key = key_of(s.distances[i], s.rows[i]);
    if (s.pool.takes(key)) s.pool.insert(key);
  }
  std::size_t cursor = 0;
  while (cursor < s.pool.size()) {
    Key& best = s.pool.keys()[cursor];
    if (best & 1u) {
      ++cursor;
      continue;
    }
    const std::uint32_t position = position_of(best);
    best |= 1u;
    const std::uint32_t* const list = lists.list(position);
    const std::uint32_t length = lists.size(position);
    s.reserve(length);
    std::uint32_t* const rows = s.rows.data();
    count = 0;
    for (std::uint32_t i = 0; i < length; ++i) {
      rows[count] = list[i];
      count += s.visited.insert(list[i]) ? 1u : 0u;
    }
    if (count == 0) continue;
    const std::size_t ahead = std::min<std::size_t>(count, 8);
    for (std::size_t i = 0; i < ahead; ++i) {
      const char* const address = distances.address(rows[i]);
      for (std::size_t b = 0; b < distances.row_bytes(); b += 64) prefetch(address + b);
    }
    distances(rows, count, s.distances.data(), s);
    std::size_t lowest = s.pool.size();
    for (std::size_t i = 0; i < count; ++i) {
      const Key key = key_of(s.distances[i], rows[i]);
      if (s.pool.takes(key)) lowest = std::min(lowest, s.pool.insert(key));
    }
    cursor = std::min(cursor, lowest);
  }
}

}  // namespace chnsw
