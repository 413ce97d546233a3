// An aligned array that either owns its memory or looks into a mapped file.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace chnsw {

inline constexpr std::size_t kAlignment = 64;

template <class T>
class Array {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Array() = default;
  explicit Array(std::size_t size) { allocate(size); }  // filled with zeros
  Array(Array&& other) noexcept { swap(other); }
  Array& operator=(Array&& other) noexcept {
    Array moved(std::move(other));
    swap(moved);
    return *this;
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { release(); }

  // Looks at memory of somebody else's, who must outlive the array.
  static Array view(const T* data, std::size_t size) {
    Array array;
    array.data_ = const_cast<T*>(data);
    array.size_ = size;
    return array;
  }

  // The same content and room for more (zeros), owned whatever it was before.
  void grow(std::size_t size) {
    Array larger(size);
    if (size_ != 0) std::memcpy(larger.data_, data_, (size < size_ ? size : size_) * sizeof(T));
    swap(larger);
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return size_ * sizeof(T); }
  bool empty() const { return size_ == 0; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

 private:
  void allocate(std::size_t size) {
    if (size == 0) return;
    if (size > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_alloc();
    data_ = static_cast<T*>(::operator new(size * sizeof(T), std::align_val_t(kAlignment)));
    std::memset(static_cast<void*>(data_), 0, size * sizeof(T));
    size_ = size;
    owned_ = true;
  }
  void release() {
    if (owned_) ::operator delete(data_, std::align_val_t(kAlignment));
    data_ = nullptr;
    size_ = 0;
    owned_ = false;
  }
  void swap(Array& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(owned_, other.owned_);
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
  bool owned_ = false;
};

}  // namespace chnsw
