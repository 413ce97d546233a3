// The file of an index: a fixed header, a table of arrays, the arrays (each at a multiple of 64 bytes), a checksum.
// Little-endian; the same index gives the same bytes.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#define CHNSW_MMAP 1
#endif

#include "array.hpp"
#include "common.hpp"
#include "kernels.hpp"
#include "level.hpp"

namespace chnsw {

static_assert(std::endian::native == std::endian::little, "the file format is the memory of a little-endian machine");

inline constexpr char kMagic[8] = {'C', 'H', 'N', 'S', 'W', 'I', 'D', 'X'};
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::size_t kArrays = 11;  // of a level
inline constexpr std::uint32_t kMaxLevels = 4096;
inline constexpr unsigned char kZeros[64] = {};

struct FileHeader {  // no padding: every byte is a field
  char magic[8];
  std::uint32_t version, header_bytes;
  std::uint64_t file_bytes, checksum, seed;
  std::uint32_t dim, metric, dtype, m, ef_construction, exact_below, entries, levels;
};
static_assert(sizeof(FileHeader) == 72 && std::has_unique_object_representations_v<FileHeader>);

struct FileLevel {
  std::int32_t layer;
  std::uint32_t n, entry, zero;
  std::uint64_t offset[kArrays], size[kArrays];  // bytes from the file's start; values
};
static_assert(sizeof(FileLevel) == 16 + 16 * kArrays && std::has_unique_object_representations_v<FileLevel>);

// Four lanes of multiply and rotate over 32-byte strides; made to notice damage, not malice.
class Checksum {
 public:
  void add(const void* data, std::size_t bytes) {  // each call but the last: a multiple of 32 bytes
    const auto* p = static_cast<const unsigned char*>(data);
    length_ += bytes;
    std::size_t i = 0;
    for (; i + 32 <= bytes; i += 32)
      for (std::size_t lane = 0; lane < 4; ++lane) {
        std::uint64_t word;
        std::memcpy(&word, p + i + 8 * lane, 8);
        lanes_[lane] = std::rotl(lanes_[lane] + word * 0xc2b2ae3d27d4eb4full, 31) * 0x9e3779b185ebca87ull;
      }
    for (; i < bytes; ++i) lanes_[i % 4] = (std::rotl(lanes_[i % 4], 11) ^ p[i]) * 0x9e3779b185ebca87ull;
  }
  std::uint64_t value() const {
    std::uint64_t sum = length_;
    for (const std::uint64_t lane : lanes_) {
      sum = (std::rotl(sum, 27) ^ lane) * 0xc2b2ae3d27d4eb4full;
      sum ^= sum >> 29;
    }
    return sum;
  }

 private:
  std::uint64_t lanes_[4] = {1, 2, 3, 4}, length_ = 0;
};

// Calls visit(array) on the arrays of a level in the order of the file.
template <class L, class Visit>
void each_array(L& level, Visit&& visit) {
  visit(level.vectors);
  visit(level.ids);
  visit(level.positions);
  visit(level.offsets);
  visit(level.targets);
  visit(level.down);
  visit(level.link);
  visit(level.bytes);
  visit(level.scale);
  visit(level.norms);
  visit(level.halves);
}

// A whole file in memory: mapped or read.
class FileBytes {
 public:
  FileBytes(const std::filesystem::path& path, bool map) {
#ifdef CHNSW_MMAP
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) throw FileError("cannot open '" + path.string() + "': " + std::strerror(errno) + ".");
    struct stat status {};
    if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
      ::close(descriptor);
      throw FileError("'" + path.string() + "' is not a regular file; give the path that save() wrote.");
    }
    size_ = static_cast<std::size_t>(status.st_size);
    if (map && size_ > 0) {
      void* const address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
      if (address != MAP_FAILED) {
        data_ = static_cast<const unsigned char*>(address);
        mapped_ = true;
        ::close(descriptor);
        return;
      }
    }
    owned_ = Array<unsigned char>(size_);
    std::size_t done = 0;
    while (done < size_) {
      const ssize_t got = ::read(descriptor, owned_.data() + done, size_ - done);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        ::close(descriptor);
        throw FileError("reading '" + path.string() + "' failed.");
      }
      done += static_cast<std::size_t>(got);
    }
    ::close(descriptor);
#else
    (void)map;
    std::FILE* const file = std::fopen(path.string().c_str(), "rb");
    if (file == nullptr) throw FileError("cannot open '" + path.string() + "'.");
    size_ = static_cast<std::size_t>(std::filesystem::file_size(path));
    owned_ = Array<unsigned char>(size_);
    const bool good = std::fread(owned_.data(), 1, size_, file) == size_;
    std::fclose(file);
    if (!good) throw FileError("reading '" + path.string() + "' failed.");
#endif
    data_ = owned_.data();
  }
  ~FileBytes() {
#ifdef CHNSW_MMAP
    if (mapped_) ::munmap(const_cast<unsigned char*>(data_), size_);
#endif
  }
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;
  const unsigned char* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool mapped() const { return mapped_; }

 private:
  Array<unsigned char> owned_;
  const unsigned char* data_ = nullptr;
  std::size_t size_ = 0;
  bool mapped_ = false;
};

namespace file_detail {

inline std::uint64_t checksum(FileHeader header, const unsigned char* rest, std::size_t bytes) {
  header.checksum = 0;
  unsigned char first[96] = {};  // a multiple of 32
  std::memcpy(first, &header, sizeof header);
  Checksum sum;
  sum.add(first, sizeof first);
  sum.add(rest, bytes);
  return sum.value();
}

[[noreturn]] inline void damaged(const std::string& what) {
  throw FileError("the index file is damaged (" + what + "); save the index again, or build it anew.");
}

// All that the search relies on, so that no file, however made, leads it outside an array.
inline void validate(const Settings& s, const std::vector<Level>& levels) {
  std::int32_t expected = -2;
  for (std::size_t l = 0; l < levels.size(); ++l) {
    const Level& level = levels[l];
    const std::size_t n = level.n;
    if (n < 1 || n > kMaxNodes) damaged("size of a level");
    if (level.hidden() ? level.layer != -1 || l + 1 == levels.size() : expected != -2 && level.layer != expected)
      damaged("order of the layers");
    if (!level.hidden()) expected = level.layer - 1;
    if (l + 1 == levels.size() && level.layer != 0) damaged("order of the layers");
    if (level.entry >= n) damaged("entry");
    const bool has_link = !level.hidden() && l + 1 < levels.size() && levels[l + 1].hidden();
    if (level.vectors.size() != n * level.stride || level.ids.size() != n || level.positions.size() != n ||
        level.offsets.size() != n + 1 || level.down.size() != (l + 1 < levels.size() ? n : 0) ||
        level.link.size() != (has_link ? n : 0))
      damaged("size of an array");
    const bool bytes = s.dtype == Dtype::int8;
    if (level.bytes.size() != (bytes ? n * level.byte_stride : 0) || level.scale.size() != (bytes ? s.dim : 0) ||
        level.norms.size() != (bytes && s.metric == Metric::l2 ? n : 0) ||
        level.halves.size() != (s.dtype == Dtype::float16 ? n * level.stride : 0))
      damaged("size of a traversal copy");
    if (level.offsets[0] != 0 || level.offsets[n] != level.targets.size()) damaged("offsets");
    for (std::size_t p = 0; p < n; ++p) {
      if (level.offsets[p] > level.offsets[p + 1]) damaged("offsets");
      if (level.ids[p] >= n || level.positions[level.ids[p]] != p) damaged("ids");
    }
    for (const std::uint32_t target : level.targets)
      if (target >= n) damaged("a neighbour");
    for (const std::uint32_t to : level.down)
      if (to >= levels[l + 1].n) damaged("a link");
    if (has_link) {
      std::size_t below = l + 1;
      while (levels[below].hidden()) ++below;
      for (const std::uint32_t to : level.link)
        if (to >= levels[below].n) damaged("a link");
    }
    for (const float value : level.vectors)
      if (!(value >= -kMaxValue && value <= kMaxValue)) damaged("a vector");
    for (const float value : level.scale)
      if (!(value > 0 && value <= kMaxValue)) damaged("a scale");
    for (const float value : level.norms)
      if (!(value >= 0 && value <= 3e38f)) damaged("a norm");
    for (const std::uint16_t half : level.halves)
      if ((half & 0x7c00u) == 0x7c00u) damaged("a half");
  }
}

}  // namespace file_detail

// Writes beside the path first and renames: a reader never sees half a file.
inline void save_file(const std::filesystem::path& path, const Settings& s, const std::vector<Level>& levels) {
  FileHeader header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = kVersion;
  header.header_bytes = sizeof(FileHeader);
  header.seed = s.seed;
  header.dim = s.dim;
  header.metric = static_cast<std::uint32_t>(s.metric);
  header.dtype = static_cast<std::uint32_t>(s.dtype);
  header.m = s.m;
  header.ef_construction = s.ef_construction;
  header.exact_below = s.exact_below;
  header.entries = s.entries;
  header.levels = static_cast<std::uint32_t>(levels.size());
  std::vector<FileLevel> table(levels.size());
  // The checksum runs over the header (in 96 bytes) and everything behind it; all pieces are multiples of 32 bytes.
  const std::size_t table_bytes =
      round_up(sizeof(FileHeader) + table.size() * sizeof(FileLevel), 64) - sizeof(FileHeader);
  std::uint64_t at = sizeof(FileHeader) + table_bytes;
  for (std::size_t l = 0; l < levels.size(); ++l) {
    table[l].layer = levels[l].layer;
    table[l].n = levels[l].n;
    table[l].entry = levels[l].entry;
    std::size_t i = 0;
    each_array(levels[l], [&](const auto& array) {
      table[l].offset[i] = at;
      table[l].size[i++] = array.size();
      at += round_up(array.bytes(), 64);
    });
  }
  header.file_bytes = at;
  std::vector<unsigned char> head(table_bytes, 0);
  if (!table.empty()) std::memcpy(head.data(), table.data(), table.size() * sizeof(FileLevel));

  std::filesystem::path partial = path;
  static std::atomic<unsigned> saved{0};  // two savers to one path do not write into each other's file
#ifdef CHNSW_MMAP
  partial += "." + std::to_string(::getpid());
#endif
  partial += "." + std::to_string(saved.fetch_add(1)) + ".partial";
  std::FILE* const file = std::fopen(partial.string().c_str(), "wb");
  if (file == nullptr) throw FileError("cannot write '" + partial.string() + "': " + std::strerror(errno) + ".");
  bool good = true;
  const auto write = [&](const void* data, std::size_t bytes) {
    if (bytes != 0) good = good && std::fwrite(data, 1, bytes, file) == bytes;
  };
  Checksum sum;
  unsigned char first[96] = {};
  std::memcpy(first, &header, sizeof header);
  sum.add(first, sizeof first);
  write(&header, sizeof header);
  // Pieces whose length is no multiple of 32 are summed through a buffer, so that the sum is that of the whole.
  std::vector<unsigned char> rest;
  const auto put = [&](const void* data, std::size_t bytes) {
    write(data, bytes);
    const auto* p = static_cast<const unsigned char*>(data);
    if (!rest.empty()) {
      const std::size_t take = std::min(bytes, 32 - rest.size());
      rest.insert(rest.end(), p, p + take);
      p += take;
      bytes -= take;
      if (rest.size() < 32) return;
      sum.add(rest.data(), 32);
      rest.clear();
    }
    const std::size_t whole = bytes / 32 * 32;
    sum.add(p, whole);
    rest.assign(p + whole, p + bytes);
  };
  put(head.data(), head.size());
  for (const Level& level : levels)
    each_array(level, [&](const auto& array) {
      put(array.data(), array.bytes());
      put(kZeros, round_up(array.bytes(), 64) - array.bytes());
    });
  sum.add(rest.data(), rest.size());
  header.checksum = sum.value();
  good = good && std::fseek(file, 0, SEEK_SET) == 0;
  write(&header, sizeof header);
  good = std::fclose(file) == 0 && good;
  std::error_code error;
  if (good) std::filesystem::rename(partial, path, error);
  if (!good || error) {
    std::error_code ignored;
    std::filesystem::remove(partial, ignored);
    throw FileError("writing '" + path.string() + "' failed; is the disk full, or the folder not writable?");
  }
}

struct Loaded {
  Settings settings;
  std::vector<Level> levels;
  std::shared_ptr<FileBytes> file;  // what the arrays look into
};

inline Loaded load_file(const std::filesystem::path& path, bool map) {
  using file_detail::damaged;
  Loaded loaded;
  loaded.file = std::make_shared<FileBytes>(path, map);
  const unsigned char* const data = loaded.file->data();
  const std::size_t bytes = loaded.file->size();
  FileHeader header;
  if (bytes < sizeof header || std::memcmp(data, kMagic, sizeof kMagic) != 0)
    throw FileError("'" + path.string() + "' is not an index of this library; give a file that save() wrote.");
  std::memcpy(&header, data, sizeof header);
  if (header.version != kVersion)
    throw FileError("the index file has format version " + std::to_string(header.version) + ", this library reads " +
                    std::to_string(kVersion) + "; build the index anew.");
  if (header.header_bytes != sizeof header) damaged("header");
  if (header.file_bytes != bytes)
    damaged("it has " + std::to_string(bytes) + " bytes and should have " + std::to_string(header.file_bytes));
  if (header.levels < 1 || header.levels > kMaxLevels) damaged("number of levels");
  if (file_detail::checksum(header, data + sizeof header, bytes - sizeof header) != header.checksum)
    damaged("checksum");
  Settings& s = loaded.settings;
  s.dim = header.dim;
  s.metric = static_cast<Metric>(header.metric);
  s.dtype = static_cast<Dtype>(header.dtype);
  s.m = header.m;
  s.ef_construction = header.ef_construction;
  s.seed = header.seed;
  s.exact_below = header.exact_below;
  s.entries = header.entries;
  try {
    check(s);
  } catch (const ValueError& error) {
    damaged(error.what());
  }
  const std::size_t table_bytes = header.levels * sizeof(FileLevel);
  if (bytes - sizeof header < table_bytes) damaged("table of the levels");
  for (std::uint32_t l = 0; l < header.levels; ++l) {
    FileLevel entry;
    std::memcpy(&entry, data + sizeof header + l * sizeof(FileLevel), sizeof entry);
    Level& level = loaded.levels.emplace_back();
    level.layer = entry.layer;
    level.n = entry.n;
    level.entry = entry.entry;
    level.stride = round_up(s.dim, kPadding);
    level.byte_stride = s.dtype == Dtype::int8 ? round_up(s.dim, kBytePadding) : 0;
    std::size_t i = 0;
    each_array(level, [&]<class T>(Array<T>& array) {
      const std::uint64_t offset = entry.offset[i], size = entry.size[i];
      ++i;
      if (offset > bytes || offset % kAlignment != 0 || size > (bytes - offset) / sizeof(T))
        damaged("place of an array");
      if (size != 0) array = Array<T>::view(reinterpret_cast<const T*>(data + offset), size);
    });
  }
  file_detail::validate(s, loaded.levels);
  return loaded;
}

}  // namespace chnsw
