// One level of the stack: a layer of the user's, or a hidden sample that gives a large layer its entries.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "array.hpp"
#include "common.hpp"
#include "kernels.hpp"

namespace chnsw {

// Nodes are kept by *position*: an order in which those under one node of the level above are neighbours in memory. The
// user's ids are the rows of the array given; `ids` and `positions` translate.
struct Level {
  std::int32_t layer = -1;  // the user's layer, or -1: hidden
  std::uint32_t n = 0;
  std::size_t stride = 0;  // values from one row to the next
  Array<float> vectors;
  Array<std::uint32_t> ids, positions;
  // The graph in compressed rows: the neighbours of p are targets[offsets[p]] … targets[offsets[p + 1]].
  Array<std::uint64_t> offsets;
  Array<std::uint32_t> targets;
  Array<std::uint32_t> down;  // position of the nearest node of the next level (empty at the bottom)
  Array<std::uint32_t> link;  // the same in the next layer of the user's, where a hidden level lies between
  std::uint32_t entry = 0;    // every node is reached from this one; it is the link of the entry above

  // Traversal copies (int8 and float16).
  std::size_t byte_stride = 0;
  Array<std::uint8_t> bytes;      // round(value / scale) + 128
  Array<float> scale;             // one for each dimension
  Array<float> norms;             // squared, of the quantised rows (l2)
  Array<std::uint16_t> halves;

  bool hidden() const { return layer < 0; }
  const float* row(std::uint32_t position) const { return vectors.data() + position * stride; }
  const std::uint32_t* neighbours(std::uint32_t position) const { return targets.data() + offsets[position]; }
  std::uint32_t degree(std::uint32_t position) const {
    return static_cast<std::uint32_t>(offsets[position + 1] - offsets[position]);
  }
  std::size_t traversal_bytes() const { return bytes.bytes() + scale.bytes() + norms.bytes() + halves.bytes(); }
  std::size_t graph_bytes() const { return offsets.bytes() + targets.bytes() + down.bytes() + link.bytes(); }
  std::size_t total_bytes() const {
    return vectors.bytes() + ids.bytes() + positions.bytes() + graph_bytes() + traversal_bytes();
  }

  void number() {  // positions from ids
    positions = Array<std::uint32_t>(n);
    for (std::uint32_t p = 0; p < n; ++p) positions[ids[p]] = p;
  }
};

inline float greater(float a, float b) { return a < b ? b : a; }  // std::fmax would ask about NaN, which there is not

// To the nearest integer within ±127; adding and taking off 1.5 · 2^23 rounds half to even, in whole registers.
inline float round127(float value) {
  value = value < -127.0f ? -127.0f : value > 127.0f ? 127.0f : value;
  return (value + 12582912.0f) - 12582912.0f;
}

// Makes the traversal copies of rows [from, n). The scales are set once, by the first rows: later ones are clamped.
inline void quantise(Level& level, const Settings& s, std::uint32_t from = 0) {
  if (s.dtype == Dtype::float16) {
    level.halves.grow(level.n * level.stride);
    for (std::size_t i = from * level.stride; i < level.n * level.stride; ++i) {
      if (std::fabs(level.vectors[i]) > 65504.0f)
        throw ValueError("a value is beyond 65504, the greatest of float16; take dtype 'float32' or 'int8'.");
      level.halves[i] = to_half(level.vectors[i]);
    }
  }
  if (s.dtype != Dtype::int8) return;
  level.byte_stride = round_up(s.dim, kBytePadding);
  level.bytes.grow(level.n * level.byte_stride);
  if (s.metric == Metric::l2) level.norms.grow(level.n);
  if (level.scale.empty()) {
    level.scale = Array<float>(s.dim);
    for (std::uint32_t p = 0; p < level.n; ++p)
      for (std::size_t d = 0; d < s.dim; ++d) level.scale[d] = greater(level.scale[d], std::fabs(level.row(p)[d]));
    for (float& scale : level.scale) scale = scale > 0x1p-100f ? scale / 127.0f : 1.0f;
  }
  for (std::uint32_t p = from; p < level.n; ++p) {
    std::uint8_t* to = level.bytes.data() + p * level.byte_stride;
    std::memset(to, 128, level.byte_stride);
    double norm = 0;
    for (std::size_t d = 0; d < s.dim; ++d) {
      const float value = round127(level.row(p)[d] / level.scale[d]);
      to[d] = static_cast<std::uint8_t>(static_cast<int>(value) + 128);
      norm += static_cast<double>(value * level.scale[d]) * static_cast<double>(value * level.scale[d]);
    }
    if (s.metric == Metric::l2) level.norms[p] = static_cast<float>(norm);
  }
}

}  // namespace chnsw
