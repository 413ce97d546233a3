// Distances. Each kind of SIMD has the same table of functions; `kernels()` is the table in force.
//
// Rows are padded with zeros to kPadding values, so no kernel has a tail. Within one kind a pair of vectors has one sum,
// whichever function computes it: one accumulator a pair, the same order, the same reduction. Between kinds the sums
// differ in their last bits. `ip` gives minus the dot product.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "common.hpp"

#if defined(__x86_64__) && defined(__GNUC__)
#define CHNSW_X86 1
#include <immintrin.h>
#endif

namespace chnsw {

inline constexpr std::size_t kPadding = 16;      // values of a row of floats or halves: one AVX-512 register
inline constexpr std::size_t kBytePadding = 64;  // of a row of bytes

// Which rows of a panel of 32 may be nearer than what a query has: those whose quantised product, with its greatest
// error, reaches the query's threshold (links.hpp says how). The panel holds four bytes of each of the 32 rows, then the
// next four.
struct Panel {
  const std::uint8_t* bytes;  // biased by 128
  std::size_t groups;         // of four bytes
  const float *scale, *error, *norm, *offset;  // 32 each
};
struct PanelQuery {
  const std::int8_t* bytes;
  std::int32_t bias;
  float scale, norm, error, threshold;
};

struct Kernels {
  const char* name;
  // out[i] = distance of q to the row rows[i] of base; stride (in values) is a multiple of kPadding.
  using Rows = void (*)(const float* q, const float* base, std::size_t stride, const std::uint32_t* rows,
                        std::size_t count, float* out);
  using HalfRows = void (*)(const float* q, const std::uint16_t* base, std::size_t stride, const std::uint32_t* rows,
                            std::size_t count, float* out);
  using ByteRows = void (*)(const std::int8_t* q, const std::uint8_t* base, std::size_t stride,
                            const std::uint32_t* rows, std::size_t count, std::int32_t* out);
  // out[i * count + j] = distance of the i-th of nq rows of q to the j-th row of x.
  using Tile = void (*)(const float* q, std::size_t nq, const float* x, std::size_t count, std::size_t stride,
                        float* out);
  Rows ip_rows, l2_rows;
  Tile ip_tile, l2_tile;
  HalfRows ip_half, l2_half;
  ByteRows dot_byte;  // rows are biased by 128 and unsigned
  // A bit is set where product * scales + norm * row error + error * row norm + row offset >= threshold. nullptr
  // where it would not be faster than computing the distances.
  using Screen = void (*)(const PanelQuery* queries, std::size_t count, const Panel& panel, std::uint32_t* masks);
  Screen screen;
};

// ---- half precision, in software (IEEE 754 binary16, round to nearest even) ----

inline float from_half(std::uint16_t h) {
  const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000u) << 16;
  const std::uint32_t exponent = (h >> 10) & 31u;
  const std::uint32_t mantissa = h & 1023u;
  if (exponent == 0) {
    const float value = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -value : value;
  }
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | mantissa << 13);
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

inline std::uint16_t to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const float magnitude = std::bit_cast<float>(bits & 0x7fffffffu);
  if (!(magnitude < 65520.0f)) return static_cast<std::uint16_t>(sign | 0x7bffu);  // clamp to the largest finite
  if (magnitude < 0x1p-14f) {  // subnormal: adding 2^-1 leaves the rounded mantissa in the low bits
    const auto rounded = std::bit_cast<std::uint32_t>(magnitude + 0.5f) - std::bit_cast<std::uint32_t>(0.5f);
    return static_cast<std::uint16_t>(sign | rounded);
  }
  const std::uint32_t m = bits & 0x7fffffffu;
  const std::uint32_t rounded = m + 0xfffu + ((m >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((rounded >> 13) - (112u << 10)));
}

// ---- portable ----

namespace portable {

template <bool L2, class Value>
inline float pair(const float* q, const Value* x, std::size_t stride) {
  float sums[16] = {};
  for (std::size_t d = 0; d < stride; d += 16) {
    for (std::size_t i = 0; i < 16; ++i) {
      float v;
      if constexpr (sizeof(Value) == 2)
        v = from_half(x[d + i]);
      else
        v = x[d + i];
      if constexpr (L2) {
        const float difference = q[d + i] - v;
        sums[i] += difference * difference;
      } else {
        sums[i] += q[d + i] * v;
      }
    }
  }
  for (std::size_t width = 8; width > 0; width /= 2)
    for (std::size_t i = 0; i < width; ++i) sums[i] += sums[i + width];
  return L2 ? sums[0] : -sums[0];
}

template <bool L2, class Value>
inline void rows(const float* q, const Value* base, std::size_t stride, const std::uint32_t* ids, std::size_t count,
                 float* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = pair<L2>(q, base + ids[i] * stride, stride);
}

template <bool L2>
inline void tile(const float* q, std::size_t nq, const float* x, std::size_t count, std::size_t stride, float* out) {
  for (std::size_t i = 0; i < nq; ++i)
    for (std::size_t j = 0; j < count; ++j) out[i * count + j] = pair<L2>(q + i * stride, x + j * stride, stride);
}

inline void bytes(const std::int8_t* q, const std::uint8_t* base, std::size_t stride, const std::uint32_t* ids,
                  std::size_t count, std::int32_t* out) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t* x = base + ids[i] * stride;
    std::int32_t sum = 0;
    for (std::size_t d = 0; d < stride; ++d) sum += static_cast<std::int32_t>(x[d]) * q[d];
    out[i] = sum;
  }
}

inline constexpr Kernels table{"portable",   rows<false, float>, rows<true, float>, tile<false>, tile<true>,
                               rows<false, std::uint16_t>, rows<true, std::uint16_t>, bytes, nullptr};

}  // namespace portable

#ifdef CHNSW_X86

// Rows in groups of four, the rows two groups on being fetched meanwhile. `LOAD` reads one register's worth of a row.
#define CHNSW_ROWS(ISA, NAME, VALUE, REG, WIDTH, ZERO, LOADQ, LOADX, REDUCE)                                          \
  template <bool L2>                                                                                                  \
  ISA inline void NAME(const float* q, const VALUE* base, std::size_t stride, const std::uint32_t* ids,               \
                       std::size_t count, float* out) {                                                               \
    std::size_t i = 0;                                                                                                \
    for (; i + 4 <= count; i += 4) {                                                                                  \
      const VALUE* a = base + ids[i] * stride;                                                                        \
      const VALUE* b = base + ids[i + 1] * stride;                                                                    \
      const VALUE* c = base + ids[i + 2] * stride;                                                                    \
      const VALUE* e = base + ids[i + 3] * stride;                                                                    \
      const std::size_t last = count - 1;                                                                             \
      const VALUE* fa = base + ids[i + 8 < count ? i + 8 : last] * stride;                                            \
      const VALUE* fb = base + ids[i + 9 < count ? i + 9 : last] * stride;                                            \
      const VALUE* fc = base + ids[i + 10 < count ? i + 10 : last] * stride;                                          \
      const VALUE* fe = base + ids[i + 11 < count ? i + 11 : last] * stride;                                          \
      REG sa = ZERO, sb = ZERO, sc = ZERO, se = ZERO;                                                                 \
      for (std::size_t d = 0; d < stride; d += WIDTH) {                                                               \
        if (d * sizeof(VALUE) % 64 == 0) {                                                                            \
          _mm_prefetch(reinterpret_cast<const char*>(fa + d), _MM_HINT_T0);                                           \
          _mm_prefetch(reinterpret_cast<const char*>(fb + d), _MM_HINT_T0);                                           \
          _mm_prefetch(reinterpret_cast<const char*>(fc + d), _MM_HINT_T0);                                           \
          _mm_prefetch(reinterpret_cast<const char*>(fe + d), _MM_HINT_T0);                                           \
        }                                                                                                             \
        const REG v = LOADQ(q + d);                                                                                   \
        sa = add<L2>(sa, v, LOADX(a + d));                                                                            \
        sb = add<L2>(sb, v, LOADX(b + d));                                                                            \
        sc = add<L2>(sc, v, LOADX(c + d));                                                                            \
        se = add<L2>(se, v, LOADX(e + d));                                                                            \
      }                                                                                                               \
      out[i] = L2 ? REDUCE(sa) : -REDUCE(sa);                                                                         \
      out[i + 1] = L2 ? REDUCE(sb) : -REDUCE(sb);                                                                     \
      out[i + 2] = L2 ? REDUCE(sc) : -REDUCE(sc);                                                                     \
      out[i + 3] = L2 ? REDUCE(se) : -REDUCE(se);                                                                     \
    }                                                                                                                 \
    for (; i < count; ++i) {                                                                                          \
      const VALUE* a = base + ids[i] * stride;                                                                        \
      REG sa = ZERO;                                                                                                  \
      for (std::size_t d = 0; d < stride; d += WIDTH) sa = add<L2>(sa, LOADQ(q + d), LOADX(a + d));                   \
      out[i] = L2 ? REDUCE(sa) : -REDUCE(sa);                                                                         \
    }                                                                                                                 \
  }

// Four by QUERIES pairs at a time, each with its own accumulator.
#define CHNSW_TILE(ISA, REG, WIDTH, ZERO, LOAD, REDUCE)                                                               \
  template <bool L2, int Q, int X>                                                                                    \
  ISA inline void piece(const float* q, const float* x, std::size_t count, std::size_t stride, float* out) {          \
    REG sums[Q][X];                                                                                                   \
    for (int i = 0; i < Q; ++i)                                                                                       \
      for (int j = 0; j < X; ++j) sums[i][j] = ZERO;                                                                  \
    for (std::size_t d = 0; d < stride; d += WIDTH) {                                                                 \
      REG v[Q];                                                                                                       \
      for (int i = 0; i < Q; ++i) v[i] = LOAD(q + i * stride + d);                                                    \
      for (int j = 0; j < X; ++j) {                                                                                   \
        const REG w = LOAD(x + j * stride + d);                                                                       \
        for (int i = 0; i < Q; ++i) sums[i][j] = add<L2>(sums[i][j], v[i], w);                                        \
      }                                                                                                               \
    }                                                                                                                 \
    for (int i = 0; i < Q; ++i)                                                                                       \
      for (int j = 0; j < X; ++j) out[i * count + j] = L2 ? REDUCE(sums[i][j]) : -REDUCE(sums[i][j]);                 \
  }                                                                                                                   \
  template <bool L2>                                                                                                  \
  ISA inline void tile(const float* q, std::size_t nq, const float* x, std::size_t count, std::size_t stride,         \
                       float* out) {                                                                                  \
    std::size_t i = 0;                                                                                                \
    for (; i + kTileQ <= nq; i += kTileQ) {                                                                           \
      std::size_t j = 0;                                                                                              \
      for (; j + kTileX <= count; j += kTileX)                                                                        \
        piece<L2, kTileQ, kTileX>(q + i * stride, x + j * stride, count, stride, out + i * count + j);                \
      for (; j < count; ++j)                                                                                          \
        piece<L2, kTileQ, 1>(q + i * stride, x + j * stride, count, stride, out + i * count + j);                     \
    }                                                                                                                 \
    for (; i < nq; ++i) {                                                                                             \
      std::size_t j = 0;                                                                                              \
      for (; j + 4 <= count; j += 4)                                                                                  \
        piece<L2, 1, 4>(q + i * stride, x + j * stride, count, stride, out + i * count + j);                          \
      for (; j < count; ++j)                                                                                          \
        piece<L2, 1, 1>(q + i * stride, x + j * stride, count, stride, out + i * count + j);                          \
    }                                                                                                                 \
  }

namespace avx2 {
#define CHNSW_ISA __attribute__((target("avx2,fma,f16c")))
#define CHNSW_INLINE CHNSW_ISA __attribute__((always_inline)) inline
inline constexpr std::size_t kTileQ = 3, kTileX = 4;
template <bool L2>
CHNSW_INLINE __m256 add(__m256 sum, __m256 q, __m256 x) {
  if constexpr (L2) {
    const __m256 difference = _mm256_sub_ps(q, x);
    return _mm256_fmadd_ps(difference, difference, sum);
  } else {
    return _mm256_fmadd_ps(q, x, sum);
  }
}
CHNSW_INLINE float reduce(__m256 v) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
CHNSW_INLINE __m256 load_half(const std::uint16_t* x) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x)));
}
CHNSW_ROWS(CHNSW_ISA, rows, float, __m256, 8, _mm256_setzero_ps(), _mm256_loadu_ps, _mm256_loadu_ps, reduce)
CHNSW_ROWS(CHNSW_ISA, halves, std::uint16_t, __m256, 8, _mm256_setzero_ps(), _mm256_loadu_ps, load_half, reduce)
CHNSW_TILE(CHNSW_ISA, __m256, 8, _mm256_setzero_ps(), _mm256_loadu_ps, reduce)

CHNSW_ISA inline void bytes(const std::int8_t* q, const std::uint8_t* base, std::size_t stride,
                            const std::uint32_t* ids, std::size_t count, std::int32_t* out) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t* x = base + ids[i] * stride;
    const std::uint8_t* f = base + ids[i + 4 < count ? i + 4 : count - 1] * stride;
    __m256i sum = _mm256_setzero_si256();
    for (std::size_t d = 0; d < stride; d += 16) {
      if (d % 64 == 0) _mm_prefetch(reinterpret_cast<const char*>(f + d), _MM_HINT_T0);
      const __m256i a = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(q + d)));
      const __m256i b = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + d)));
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
    }
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
    out[i] = _mm_cvtsi128_si32(s);
  }
}

inline constexpr Kernels table{"avx2",       rows<false>,   rows<true>, tile<false>, tile<true>,
                               halves<false>, halves<true>, bytes,      nullptr};
#undef CHNSW_ISA
#undef CHNSW_INLINE
}  // namespace avx2

namespace avx512 {
#define CHNSW_ISA __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")))
#define CHNSW_INLINE CHNSW_ISA __attribute__((always_inline)) inline
inline constexpr std::size_t kTileQ = 4, kTileX = 6;
template <bool L2>
CHNSW_INLINE __m512 add(__m512 sum, __m512 q, __m512 x) {
  if constexpr (L2) {
    const __m512 difference = _mm512_sub_ps(q, x);
    return _mm512_fmadd_ps(difference, difference, sum);
  } else {
    return _mm512_fmadd_ps(q, x, sum);
  }
}
CHNSW_INLINE float reduce(__m512 v) {
  const __m256 h = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
CHNSW_INLINE __m512 load_half(const std::uint16_t* x) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)));
}
CHNSW_ROWS(CHNSW_ISA, rows, float, __m512, 16, _mm512_setzero_ps(), _mm512_loadu_ps, _mm512_loadu_ps, reduce)
CHNSW_ROWS(CHNSW_ISA, halves, std::uint16_t, __m512, 16, _mm512_setzero_ps(), _mm512_loadu_ps, load_half, reduce)
CHNSW_TILE(CHNSW_ISA, __m512, 16, _mm512_setzero_ps(), _mm512_loadu_ps, reduce)

CHNSW_ISA inline void bytes(const std::int8_t* q, const std::uint8_t* base, std::size_t stride,
                            const std::uint32_t* ids, std::size_t count, std::int32_t* out) {
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const std::uint8_t* x[4];
    const std::uint8_t* f[4];
    for (std::size_t j = 0; j < 4; ++j) {
      x[j] = base + ids[i + j] * stride;
      f[j] = base + ids[i + 8 + j < count ? i + 8 + j : count - 1] * stride;
    }
    __m512i a = _mm512_setzero_si512(), b = a, c = a, e = a;
    for (std::size_t d = 0; d < stride; d += 64) {
      for (std::size_t j = 0; j < 4; ++j) _mm_prefetch(reinterpret_cast<const char*>(f[j] + d), _MM_HINT_T0);
      const __m512i v = _mm512_loadu_si512(q + d);
      a = _mm512_dpbusd_epi32(a, _mm512_loadu_si512(x[0] + d), v);
      b = _mm512_dpbusd_epi32(b, _mm512_loadu_si512(x[1] + d), v);
      c = _mm512_dpbusd_epi32(c, _mm512_loadu_si512(x[2] + d), v);
      e = _mm512_dpbusd_epi32(e, _mm512_loadu_si512(x[3] + d), v);
    }
    out[i] = _mm512_reduce_add_epi32(a);
    out[i + 1] = _mm512_reduce_add_epi32(b);
    out[i + 2] = _mm512_reduce_add_epi32(c);
    out[i + 3] = _mm512_reduce_add_epi32(e);
  }
  for (; i < count; ++i) {
    const std::uint8_t* x = base + ids[i] * stride;
    __m512i a = _mm512_setzero_si512();
    for (std::size_t d = 0; d < stride; d += 64)
      a = _mm512_dpbusd_epi32(a, _mm512_loadu_si512(x + d), _mm512_loadu_si512(q + d));
    out[i] = _mm512_reduce_add_epi32(a);
  }
}

template <int Q>
CHNSW_ISA inline void screen_some(const PanelQuery* queries, const Panel& panel, std::uint32_t* masks) {
  __m512i low[Q], high[Q];
  for (int i = 0; i < Q; ++i) low[i] = high[i] = _mm512_setzero_si512();
  for (std::size_t g = 0; g < panel.groups; ++g) {
    const __m512i a = _mm512_loadu_si512(panel.bytes + g * 128);
    const __m512i b = _mm512_loadu_si512(panel.bytes + g * 128 + 64);
    for (int i = 0; i < Q; ++i) {
      std::int32_t four;
      std::memcpy(&four, queries[i].bytes + g * 4, 4);
      const __m512i v = _mm512_set1_epi32(four);
      low[i] = _mm512_dpbusd_epi32(low[i], a, v);
      high[i] = _mm512_dpbusd_epi32(high[i], b, v);
    }
  }
  for (int i = 0; i < Q; ++i) {
    const PanelQuery& q = queries[i];
    std::uint32_t mask = 0;
    for (int half = 0; half < 2; ++half) {
      const __m512i sum = _mm512_sub_epi32(half == 0 ? low[i] : high[i], _mm512_set1_epi32(q.bias));
      const int at = 16 * half;
      const __m512 scale = _mm512_mul_ps(_mm512_loadu_ps(panel.scale + at), _mm512_set1_ps(q.scale));
      __m512 value = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), scale, _mm512_loadu_ps(panel.offset + at));
      value = _mm512_fmadd_ps(_mm512_loadu_ps(panel.error + at), _mm512_set1_ps(q.norm), value);
      value = _mm512_fmadd_ps(_mm512_loadu_ps(panel.norm + at), _mm512_set1_ps(q.error), value);
      const std::uint32_t bits = _mm512_cmp_ps_mask(value, _mm512_set1_ps(q.threshold), _CMP_GE_OQ);
      mask |= bits << at;
    }
    masks[i] = mask;
  }
}

CHNSW_ISA inline void screen(const PanelQuery* queries, std::size_t count, const Panel& panel, std::uint32_t* masks) {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) screen_some<8>(queries + i, panel, masks + i);
  for (; i + 2 <= count; i += 2) screen_some<2>(queries + i, panel, masks + i);
  for (; i < count; ++i) screen_some<1>(queries + i, panel, masks + i);
}

inline constexpr Kernels table{"avx512",     rows<false>,   rows<true>, tile<false>, tile<true>,
                               halves<false>, halves<true>, bytes,      screen};
#undef CHNSW_ISA
#undef CHNSW_INLINE
}  // namespace avx512

#undef CHNSW_ROWS
#undef CHNSW_TILE

#endif  // CHNSW_X86

// ---- the table in force ----

// The table of this name where the processor can run it, else nullptr. "auto" is the best there is.
inline const Kernels* find_kernels(std::string_view name) {
  if (name == "portable") return &portable::table;
#ifdef CHNSW_X86
  __builtin_cpu_init();
  const bool has_avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512vnni");
  if (has_avx512 && (name == "avx512" || name == "auto")) return &avx512::table;
  if (has_avx2 && (name == "avx2" || name == "auto")) return &avx2::table;
#endif
  return name == "auto" ? &portable::table : nullptr;
}

inline std::atomic<const Kernels*>& kernels_slot() {
  static std::atomic<const Kernels*> slot{find_kernels("auto")};
  return slot;
}
inline const Kernels& kernels() { return *kernels_slot().load(std::memory_order_relaxed); }
inline void use_kernels(std::string_view name) {
  const Kernels* table = find_kernels(name);
  if (table == nullptr)
    throw ValueError("no SIMD kind '" + std::string(name) +
                     "' here; give 'auto', 'portable', or 'avx2' or 'avx512' on a processor that has it.");
  kernels_slot().store(table, std::memory_order_relaxed);
}

}  // namespace chnsw
