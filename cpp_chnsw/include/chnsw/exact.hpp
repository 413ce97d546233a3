// Exact nearest rows for a block of queries: tiles of distances, so that a row is read once for many queries.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "common.hpp"
#include "kernels.hpp"
#include "traverse.hpp"

namespace chnsw {

inline constexpr std::size_t kExactQueries = 64;  // queries of a block
inline constexpr std::size_t kExactRows = 48;     // rows of a tile: with the queries' rows they stay in the cache

// Fills scratch.pools[i] with the `keep` best of rows [0, n) of x for the i-th of `count` queries (rows of q). The
// key's position is label(row); a row for which skip(i, row) holds is left out.
template <class Label, class Skip>
void exact_block(const Kernels& k, Metric metric, const float* q, std::size_t count, const float* x, std::size_t n,
                 std::size_t stride, std::size_t keep, Label&& label, Skip&& skip, Scratch& s) {
  if (s.pools.size() < count) s.pools.resize(count);
  for (std::size_t i = 0; i < count; ++i) s.pools[i].start(keep);
  if (s.tile.size() < count * kExactRows) s.tile.resize(count * kExactRows);
  const auto tile = metric == Metric::l2 ? k.l2_tile : k.ip_tile;
  for (std::size_t begin = 0; begin < n; begin += kExactRows) {
    const std::size_t rows = std::min(kExactRows, n - begin);
    tile(q, count, x + begin * stride, rows, stride, s.tile.data());
    for (std::size_t i = 0; i < count; ++i) {
      Pool& pool = s.pools[i];
      const float* const out = s.tile.data() + i * rows;
      float bound = pool.bound();
      for (std::size_t j = 0; j < rows; ++j) {
        if (out[j] > bound || skip(i, begin + j)) continue;
        const Key key = key_of(out[j], label(begin + j));
        if (pool.takes(key)) {
          pool.insert(key);
          bound = pool.bound();
        }
      }
    }
  }
  s.computed += count * n;
}

// Copies rows of a matrix side by side into scratch.block.
inline void gather(const float* base, std::size_t stride, const std::uint32_t* rows, std::size_t count, Scratch& s) {
  if (s.block.size() < count * stride) s.block = Array<float>(count * stride);
  for (std::size_t i = 0; i < count; ++i)
    std::memcpy(s.block.data() + i * stride, base + rows[i] * stride, stride * sizeof(float));
}

}  // namespace chnsw
