// Links between levels: for every node the true nearest node of the level below, by exact comparison.
//
// The level below is cut into blocks of positions, which are near each other; a block is compared only where its centre
// and radius do not exclude that it holds something nearer than what a search of the graph found first. What is left is
// screened by 8-bit products with their greatest error, where the processor multiplies bytes four times as fast: with
// u = û + e and x = x̂ + f, by Cauchy and Schwarz u·x <= û·x̂ + |û||f| + |e||x|. Only rows that pass are compared in float32.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common.hpp"
#include "exact.hpp"
#include "kernels.hpp"
#include "level.hpp"
#include "traverse.hpp"
#include "workers.hpp"

namespace chnsw {

// Centres and radii of the blocks of a level.
struct Blocks {
  static constexpr std::uint32_t kRows = 32;
  std::size_t count = 0;
  Array<float> centres;
  std::vector<float> radii, norms;  // of the blocks, of the centres

  Blocks(const Level& level, Workers& workers) : count((level.n + kRows - 1) / kRows) {
    centres = Array<float>(count * level.stride);
    radii.resize(count);
    norms.resize(count);
    workers.run(count, 64, [&](std::size_t begin, std::size_t end, unsigned) {
      std::vector<double> sum(level.stride);
      for (std::size_t b = begin; b < end; ++b) {
        const std::uint32_t first = static_cast<std::uint32_t>(b * kRows), last = std::min(level.n, first + kRows);
        std::fill(sum.begin(), sum.end(), 0.0);
        for (std::uint32_t p = first; p < last; ++p)
          for (std::size_t d = 0; d < level.stride; ++d) sum[d] += level.row(p)[d];
        float* const centre = centres.data() + b * level.stride;
        for (std::size_t d = 0; d < level.stride; ++d) centre[d] = static_cast<float>(sum[d] / (last - first));
        double radius = 0, norm = 0;
        for (std::size_t d = 0; d < level.stride; ++d) norm += static_cast<double>(centre[d]) * centre[d];
        norms[b] = static_cast<float>(std::sqrt(norm));
        for (std::uint32_t p = first; p < last; ++p) {
          double square = 0;
          for (std::size_t d = 0; d < level.stride; ++d) {
            const double difference = static_cast<double>(level.row(p)[d]) - centre[d];
            square += difference * difference;
          }
          radius = std::max(radius, square);
        }
        radii[b] = static_cast<float>(std::sqrt(radius) * (1 + 1e-6));
      }
    });
  }
};

// A row in bytes: its scale, the norms of itself, of the quantised row and of what the rounding took away.
struct Bytes8 {
  float scale = 0, norm = 0, rounded_norm = 0, error = 0;
  std::int32_t sum = 0;

  template <class Put>
  Bytes8(const float* row, std::size_t stride, Put&& put) {
    float greatest = 0x1p-100f;
    for (std::size_t d = 0; d < stride; ++d) greatest = greater(greatest, std::fabs(row[d]));
    scale = greatest / 127.0f;
    double norms = 0, rounded = 0, errors = 0;
    for (std::size_t d = 0; d < stride; ++d) {
      const auto byte = static_cast<std::int32_t>(round127(row[d] / scale));
      put(d, byte);
      sum += byte;
      const double back = static_cast<double>(byte) * scale, lost = row[d] - back;
      norms += static_cast<double>(row[d]) * row[d];
      rounded += back * back;
      errors += lost * lost;
    }
    norm = static_cast<float>(std::sqrt(norms) * (1 + 1e-6));
    rounded_norm = static_cast<float>(std::sqrt(rounded) * (1 + 1e-6));
    error = static_cast<float>(std::sqrt(errors) * (1 + 1e-6));
  }
};

// A level as panels of 32 rows.
struct Panels {
  std::size_t groups;
  Array<std::uint8_t> bytes;
  Array<float> scale, error, norm, offset;

  Panels(const Settings& settings, const Level& level, Workers& workers) : groups(level.stride / 4) {
    const std::size_t count = (level.n + Blocks::kRows - 1) / Blocks::kRows, rows = count * Blocks::kRows;
    bytes = Array<std::uint8_t>(rows * level.stride);
    scale = Array<float>(rows);
    error = Array<float>(rows);
    norm = Array<float>(rows);
    offset = Array<float>(rows);
    workers.run(level.n, 1024, [&](std::size_t begin, std::size_t end, unsigned) {
      for (std::size_t p = begin; p < end; ++p) {
        std::uint8_t* const to = bytes.data() + p / Blocks::kRows * Blocks::kRows * level.stride + p % Blocks::kRows * 4;
        const Bytes8 row(level.row(static_cast<std::uint32_t>(p)), level.stride, [&](std::size_t d, std::int32_t byte) {
          to[d / 4 * (4 * Blocks::kRows) + d % 4] = static_cast<std::uint8_t>(byte + 128);
        });
        scale[p] = row.scale;
        error[p] = row.error;
        norm[p] = row.norm;
        // |u - x|² <= b means u·x >= (|u|² - b) / 2 + |x|² / 2; the last term goes to the row, a little less than it is.
        offset[p] = settings.metric == Metric::l2 ? -0.5f * row.norm * row.norm * (1 - 2e-5f) : 0.0f;
      }
    });
  }
  Panel of(std::size_t block) const {
    const std::size_t at = block * Blocks::kRows;
    return {bytes.data() + at * groups * 4, groups, scale.data() + at, error.data() + at, norm.data() + at,
            offset.data() + at};
  }
};

// out[u - from] = the nearest position of `lower` to the rows [from, upper.n) of `upper`; at equal distance the first.
// starts[u - from] is any position to search from.
inline std::uint64_t nearest_below(const Settings& settings, const Level& upper, std::uint32_t from, const Level& lower,
                                   const std::uint32_t* starts, std::uint32_t* out, Scratches& source,
                                   Workers& workers) {
  std::vector<std::unique_ptr<Scratch>> scratches(workers.size());
  for (auto& scratch : scratches) {
    scratch = source.take();
    scratch->computed = 0;
  }
  const std::size_t count = upper.n - from, stride = lower.stride;
  const bool small = lower.n <= 4096;
  const Blocks blocks(lower, workers);
  const bool screened = !small && kernels().screen != nullptr;
  std::unique_ptr<Panels> panels;
  if (screened) panels = std::make_unique<Panels>(settings, lower, workers);
  // For ip a block is bounded by the dot product with its centre plus |u| times its radius; else by the triangle.
  const bool ip = settings.metric == Metric::ip, l2 = settings.metric == Metric::l2;
  const auto skip_none = [](std::size_t, std::size_t) { return false; };
  workers.run(count, 32, [&](std::size_t begin, std::size_t end, unsigned worker) {
    Scratch& s = *scratches[worker];
    const std::size_t size = end - begin;
    const float* const rows = upper.vectors.data() + (from + begin) * stride;
    if (small) {
      exact_block(
          kernels(), settings.metric, rows, size, lower.vectors.data(), lower.n, stride, 1,
          [](std::size_t row) { return static_cast<std::uint32_t>(row); }, skip_none, s);
      for (std::size_t i = 0; i < size; ++i) out[begin + i] = position_of(s.pools[i].keys()[0]);
      return;
    }
    Key best[32];
    double norm[32];
    for (std::size_t i = 0; i < size; ++i) {
      const float* const row = rows + i * stride;
      traverse(CompactLists{lower}, lower.n, FloatDistances(kernels(), settings, lower, row), starts + begin + i, 1, 8,
               s);
      best[i] = s.pool.keys()[0] & ~Key{1};
      norm[i] = 0;
      for (std::size_t d = 0; d < stride; ++d) norm[i] += static_cast<double>(row[d]) * row[d];
      norm[i] = std::sqrt(norm[i]);
    }
    std::vector<std::int8_t> bytes(screened ? size * stride : 0);
    PanelQuery queries[32] = {}, wanted[32] = {};
    double squares[32] = {};
    const auto set_threshold = [&](std::size_t i) {
      const double bound = distance_of(best[i]);
      const double threshold = l2 ? 0.5 * (squares[i] * (1 - 2e-5) - bound) : -bound;
      queries[i].threshold = static_cast<float>(threshold - 1e-5 * std::fabs(threshold));
    };
    for (std::size_t i = 0; screened && i < size; ++i) {
      std::int8_t* const to = bytes.data() + i * stride;
      const Bytes8 row(rows + i * stride, stride,
                       [&](std::size_t d, std::int32_t byte) { to[d] = static_cast<std::int8_t>(byte); });
      squares[i] = norm[i] * norm[i];
      // What the screen's own arithmetic rounds is far below 1e-5 of the product of the norms.
      queries[i] = {to, 128 * row.sum, row.scale, row.rounded_norm, row.error + 1e-5f * row.norm, 0};
      set_threshold(i);
    }
    constexpr std::size_t kCentres = 64;
    std::vector<float> to_centres(32 * kCentres), tile(32 * Blocks::kRows);
    const auto measure = ip ? kernels().ip_tile : kernels().l2_tile;
    const auto compare = l2 ? kernels().l2_tile : kernels().ip_tile;
    for (std::size_t first = 0; first < blocks.count; first += kCentres) {
      const std::size_t centres = std::min(kCentres, blocks.count - first);
      measure(rows, size, blocks.centres.data() + first * stride, centres, stride, to_centres.data());
      s.computed += size * centres;
      for (std::size_t c = 0; c < centres; ++c) {
        const double radius = blocks.radii[first + c];
        std::size_t lowest = size, highest = 0, wanting = 0;
        bool wants[32];
        for (std::size_t i = 0; i < size; ++i) {
          const double to_centre = to_centres[i * centres + c], bound = distance_of(best[i]);
          bool possible;
          if (ip) {
            const double slack = 1e-5 * norm[i] * (radius + norm[i] + blocks.norms[first + c]);
            possible = to_centre - norm[i] * radius <= bound + slack;
          } else {
            // For cosine the rows are unit vectors: |u - x|² = 2 + 2 (-u·x).
            const double square = l2 ? bound : 2.0 + 2.0 * bound;
            const double reach = radius + std::sqrt(std::max(0.0, square + (l2 ? 1e-5 * norm[i] * norm[i] : 1e-5)));
            possible = std::sqrt(to_centre) * (1 - 1e-5) <= reach * (1 + 1e-5);
          }
          wants[i] = possible;
          if (possible) {
            lowest = std::min(lowest, i);
            highest = i;
            ++wanting;
          }
        }
        if (wanting == 0) continue;
        const std::uint32_t begin_row = static_cast<std::uint32_t>((first + c) * Blocks::kRows);
        const std::size_t block_rows = std::min<std::size_t>(Blocks::kRows, lower.n - begin_row);
        const auto take = [&](std::size_t i, const float* distances) {
          for (std::size_t j = 0; j < block_rows; ++j)
            best[i] = std::min(best[i], key_of(distances[j], begin_row + static_cast<std::uint32_t>(j)));
        };
        if (screened) {
          std::uint32_t who[32], masks[32];
          std::size_t count_wanted = 0;
          for (std::size_t i = lowest; i <= highest; ++i)
            if (wants[i]) {
              wanted[count_wanted] = queries[i];
              who[count_wanted++] = static_cast<std::uint32_t>(i);
            }
          kernels().screen(wanted, count_wanted, panels->of(first + c), masks);
          for (std::size_t w = 0; w < count_wanted; ++w) {
            const std::size_t i = who[w];
            const FloatDistances distances(kernels(), settings, lower, rows + i * stride);
            const Key had = best[i];
            for (std::uint32_t mask = masks[w]; mask != 0; mask &= mask - 1) {
              const std::uint32_t row = begin_row + static_cast<std::uint32_t>(std::countr_zero(mask));
              if (row >= lower.n) break;
              float distance;
              distances(&row, 1, &distance, s);
              best[i] = std::min(best[i], key_of(distance, row));
            }
            if (best[i] != had) set_threshold(i);
          }
        } else if (wanting * 2 > highest - lowest) {
          compare(rows + lowest * stride, highest - lowest + 1, lower.row(begin_row), block_rows, stride, tile.data());
          for (std::size_t i = lowest; i <= highest; ++i) take(i, tile.data() + (i - lowest) * block_rows);
          s.computed += (highest - lowest + 1) * block_rows;
        } else {
          for (std::size_t i = lowest; i <= highest; ++i) {
            if (!wants[i]) continue;
            compare(rows + i * stride, 1, lower.row(begin_row), block_rows, stride, tile.data());
            take(i, tile.data());
            s.computed += block_rows;
          }
        }
      }
    }
    for (std::size_t i = 0; i < size; ++i) out[begin + i] = position_of(best[i]);
  });
  std::uint64_t computed = 0;
  for (auto& scratch : scratches) {
    computed += scratch->computed;
    source.give(std::move(scratch));
  }
  return computed;
}

}  // namespace chnsw
