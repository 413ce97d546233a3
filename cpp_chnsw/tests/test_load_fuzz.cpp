// A fuzz test of `Index::load`: files that save() wrote, damaged at places that a seed draws. Whatever the bytes are, loading
// either throws FileError or gives an index that can be searched, and no sanitizer has anything to say.
//
// Damage that leaves the checksum wrong is caught by it, so most cases put a checksum that fits over the damaged bytes: only
// then do the checks behind it see them.
//
//   test_load_fuzz [cases of each kind and file] [seed]

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "chnsw/index.hpp"
#include "harness.hpp"

namespace {

using chnsw::Index;
using chnsw::Metric;
using chnsw::Dtype;
using Bytes = std::vector<char>;

// Puts the checksum that belongs to these bytes in their header.
void sign(Bytes& bytes) {
  chnsw::FileHeader header;
  if (bytes.size() < sizeof header) return;
  std::memcpy(&header, bytes.data(), sizeof header);
  const auto* const rest = reinterpret_cast<const unsigned char*>(bytes.data()) + sizeof header;
  header.checksum = chnsw::file_detail::checksum(header, rest, bytes.size() - sizeof header);
  std::memcpy(bytes.data(), &header, sizeof header);
}

struct Tally {
  std::size_t thrown = 0, loaded = 0;
};

void try_load(const Bytes& bytes, const harness::File& file, Tally& tally, bool must_throw) {
  file.write(bytes);
  for (const bool map : {false, true}) {
    try {
      const std::unique_ptr<Index> loaded = Index::load(file.path(), map);
      const Index& index = *loaded;
      CHECK(!must_throw);
      ++tally.loaded;
      const harness::Rows queries = harness::rows(2, index.settings().dim, 77);
      const auto hits = harness::search(index, queries, 3, 8);
      for (std::size_t l = 0; l < hits.size(); ++l) {
        for (const std::int64_t id : hits[l].ids) CHECK(id >= -1 && id < static_cast<std::int64_t>(index.layer_size(l)));
        harness::inspect(index, l);
      }
      if (tally.loaded % 4 == 0) harness::add(*loaded, 0, queries);
    } catch (const chnsw::FileError& error) {
      CHECK(std::strlen(error.what()) > 10);
      ++tally.thrown;
    }
  }
}

// One kind of damage: bits, bytes, 32-bit words of interest, a piece copied elsewhere, a shorter or a longer file.
void damage(Bytes& bytes, chnsw::Random& random, std::size_t kind) {
  const auto place = [&](std::size_t below) { return static_cast<std::size_t>(random.next() % below); };
  // Half of the places are in the header and the table, where the lengths are.
  const std::size_t reach = random.below(2) == 0 ? std::min<std::size_t>(bytes.size(), 512) : bytes.size();
  static constexpr std::uint64_t kWords[] = {0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0x7fffffff, 0x80000000, 0xffffffff,
                                             0x7fc00000, 0x7f800000, 0xffffffffffffffff, 0x7fffffffffffffff, 64};
  switch (kind) {
    case 0:
      for (std::uint32_t i = 0, n = 1 + random.below(4); i < n; ++i)
        bytes[place(reach)] ^= static_cast<char>(1u << random.below(8));
      break;
    case 1:
      for (std::uint32_t i = 0, n = 1 + random.below(16); i < n; ++i) bytes[place(reach)] = static_cast<char>(random.next());
      break;
    case 2: {  // a field set to a number that overflows or is one too many
      const std::size_t width = random.below(2) == 0 ? 4 : 8, at = place(reach - width) / width * width;
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + at, width);
      word = random.below(3) == 0 ? word + 1 - 2 * random.below(2) : kWords[random.below(std::size(kWords))];
      std::memcpy(bytes.data() + at, &word, width);
      break;
    }
    case 3: {
      const std::size_t length = 1 + place(std::min<std::size_t>(256, bytes.size() - 1));
      const std::size_t from = place(bytes.size() - length), to = place(bytes.size() - length);
      std::memmove(bytes.data() + to, bytes.data() + from, length);
      break;
    }
    case 4:
      bytes.resize(random.below(2) == 0 ? place(bytes.size()) : bytes.size() - 1 - place(std::min<std::size_t>(bytes.size(), 256)));
      break;
    default:
      for (std::size_t n = 1 + place(300); n > 0; --n) bytes.push_back(static_cast<char>(random.next()));
  }
}

// The length in the header says what the file has, so that damage by length goes further.
void tell_length(Bytes& bytes) {
  if (bytes.size() < sizeof(chnsw::FileHeader)) return;
  const std::uint64_t length = bytes.size();
  std::memcpy(bytes.data() + offsetof(chnsw::FileHeader, file_bytes), &length, sizeof length);
}

}  // namespace

int main(int count, char** arguments) {
  const std::size_t cases = count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 250;
  chnsw::Random random(count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 20);
  Tally unsigned_tally, signed_tally;
  const harness::File file("fuzz");
  struct Kind {
    Metric metric;
    Dtype dtype;
    std::uint32_t exact_below;
    std::vector<std::size_t> sizes;
  };
  // Graphs everywhere; int8 with norms; a hidden level (a large layer under a small one); halves; one vector.
  const std::vector<Kind> kinds = {
      {Metric::ip, Dtype::float32, 0, {60, 20, 5}},  {Metric::l2, Dtype::int8, 0, {90, 9}},
      {Metric::cosine, Dtype::float32, 0, {1100}},   {Metric::ip, Dtype::float16, 4, {40, 3}},
      {Metric::ip, Dtype::int8, 300, {1}},
  };
  for (const Kind& kind : kinds) {
    chnsw::Settings settings;
    settings.dim = 6;
    settings.metric = kind.metric;
    settings.dtype = kind.dtype;
    settings.m = 4;
    settings.ef_construction = 12;
    settings.exact_below = kind.exact_below;
    Index index(settings);
    harness::build(index, harness::hierarchy(kind.sizes, settings.dim, 5), 1);
    index.save(file.path());
    const Bytes good = file.read();
    {
      Bytes again = good;
      sign(again);
      CHECK(again == good);  // so `sign` knows how it is done
    }
    Tally whole;
    try_load(good, file, whole, false);
    CHECK(whole.loaded == 2);
    for (std::size_t damaging = 0; damaging < 6; ++damaging)
      for (std::size_t i = 0; i < cases; ++i) {
        Bytes bytes = good;
        damage(bytes, random, damaging);
        try_load(bytes, file, unsigned_tally, bytes != good);
        if (damaging >= 4) tell_length(bytes);
        sign(bytes);
        try_load(bytes, file, signed_tally, false);
      }
    for (std::size_t length = 0; length < std::min<std::size_t>(good.size(), 600); length += 7)  // all short beginnings
      try_load(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length)), file, unsigned_tally, true);
  }
  for (std::size_t i = 0; i < cases; ++i) {  // noise, with and without the right beginning
    Bytes bytes(random.below(4096));
    for (char& byte : bytes) byte = static_cast<char>(random.next());
    if (bytes.size() > 8 && random.below(2) == 0) std::memcpy(bytes.data(), chnsw::kMagic, 8);
    try_load(bytes, file, unsigned_tally, true);
  }
  CHECK(signed_tally.loaded > 0 && signed_tally.thrown > 0);
  std::printf("load: %zu damaged files thrown out by checksum or form; with the checksum mended %zu thrown out, %zu searched\n",
              unsigned_tally.thrown, signed_tally.thrown, signed_tally.loaded);
}
