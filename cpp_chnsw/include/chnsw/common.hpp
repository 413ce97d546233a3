// What everything else shares: settings, errors, the seeded generator, ordered keys.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace chnsw {

// l2 is the squared distance, ip is minus the dot product, cosine is one minus the cosine.
enum class Metric : std::uint32_t { ip = 0, l2 = 1, cosine = 2 };

// What the traversal reads. The float32 vectors are always kept: they give the order and the distances returned.
enum class Dtype : std::uint32_t { float32 = 0, float16 = 1, int8 = 2 };

// The user's mistake: a value, a shape or a state that cannot be served.
struct ValueError : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

// A file that cannot be read or written, or is not what it should be.
struct FileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Settings {
  std::uint32_t dim = 0;
  Metric metric = Metric::ip;
  Dtype dtype = Dtype::float32;
  std::uint32_t m = 32;                 // links a new node chooses; a list holds at most 2m
  std::uint32_t ef_construction = 100;  // candidates kept while a node is inserted
  std::uint64_t seed = 0;
  std::uint32_t exact_below = 50;   // layers with at most so many vectors are searched exactly
  std::uint32_t entries = 4;        // nodes of a layer whose links start the search of the next one
};

inline constexpr std::uint32_t kMaxDim = 65536;
inline constexpr std::uint32_t kMaxDegreeSetting = 512;
inline constexpr std::uint32_t kMaxEf = 1u << 20;
inline constexpr std::uint32_t kMaxNodes = 0x7fffffffu;  // positions take 31 bits of a key
// Squares of such values, summed over kMaxDim dimensions, stay finite: no distance is ever NaN.
inline constexpr float kMaxValue = 1e16f;

inline void check(const Settings& s) {
  const auto fail = [](const char* what) { throw ValueError(what); };
  if (s.dim < 1 || s.dim > kMaxDim) fail("dim must be between 1 and 65536; give the length of one vector.");
  if (s.m < 2 || s.m > kMaxDegreeSetting) fail("m must be between 2 and 512; 16 to 48 is usual.");
  if (s.ef_construction < 1 || s.ef_construction > kMaxEf)
    fail("ef_construction must be between 1 and 1048576; 100 to 400 is usual.");
  if (s.entries < 1 || s.entries > 64) fail("entries must be between 1 and 64; the default is 4.");
  if (static_cast<std::uint32_t>(s.metric) > 2) fail("metric must be 'ip', 'l2' or 'cosine'.");
  if (static_cast<std::uint32_t>(s.dtype) > 2) fail("dtype must be 'float32', 'float16' or 'int8'.");
}

inline std::size_t round_up(std::size_t value, std::size_t to) { return (value + to - 1) / to * to; }

// SplitMix64: the same numbers with every compiler and library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  // Uniform below `bound` (by the high half of a product; its bias is under 2^-32).
  std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>(((next() >> 32) * static_cast<std::uint64_t>(bound)) >> 32);
  }

 private:
  std::uint64_t state_;
};

inline std::vector<std::uint32_t> permutation(std::uint32_t n, std::uint64_t seed) {
  std::vector<std::uint32_t> order(n);
  for (std::uint32_t i = 0; i < n; ++i) order[i] = i;
  Random random(seed);
  for (std::uint32_t i = n; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

// A distance and a position as one integer that sorts by (distance, position). Its lowest bit is free: the search marks
// there which nodes it has expanded. Integers have a total order even where floats have none.
using Key = std::uint64_t;
inline constexpr Key kNoKey = std::numeric_limits<Key>::max();

inline Key key_of(float distance, std::uint32_t position) {
  const auto bits = std::bit_cast<std::uint32_t>(distance + 0.0f);  // -0 and 0 are one distance
  const std::uint32_t ordered = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return static_cast<Key>(ordered) << 32 | static_cast<Key>(position) << 1;
}
inline std::uint32_t position_of(Key key) { return static_cast<std::uint32_t>(key) >> 1; }
inline float distance_of(Key key) {
  const auto ordered = static_cast<std::uint32_t>(key >> 32);
  return std::bit_cast<float>(ordered & 0x80000000u ? ordered & 0x7fffffffu : ~ordered);
}

}  // namespace chnsw
