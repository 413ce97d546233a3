// Threads that live as long as one call. What they compute never depends on who computed it.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace chnsw {

class Workers {
 public:
  // `threads` 0: as many as the machine has.
  explicit Workers(unsigned threads) {
    if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
    threads = std::min(threads, 256u);
    threads_.reserve(threads - 1);
    for (unsigned i = 1; i < threads; ++i) {
      try {
        threads_.emplace_back([this, i] { serve(i); });
      } catch (const std::exception&) {
        break;  // the system gives no more threads (or memory): the ones there are do the work
      }
    }
  }
  ~Workers() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (auto& thread : threads_) thread.join();
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  unsigned size() const { return static_cast<unsigned>(threads_.size()) + 1; }

  // Calls `work(begin, end, worker)` on pieces of [0, count) of at most `grain`; the first exception comes back here.
  template <class Work>
  void run(std::size_t count, std::size_t grain, Work&& work) {
    if (count == 0) return;
    grain = std::max<std::size_t>(1, grain);
    if (threads_.empty() || count <= grain) {
      for (std::size_t begin = 0; begin < count; begin += grain) work(begin, std::min(count, begin + grain), 0u);
      return;
    }
    const std::function<void(unsigned)> job = [&](unsigned worker) {
      for (;;) {
        const std::size_t begin = next_.fetch_add(grain, std::memory_order_relaxed);
        if (begin >= count) return;
        try {
          work(begin, std::min(count, begin + grain), worker);
        } catch (...) {
          const std::lock_guard lock(mutex_);
          if (!error_) error_ = std::current_exception();
          next_.store(count, std::memory_order_relaxed);
        }
      }
    };
    {
      const std::lock_guard lock(mutex_);
      next_.store(0, std::memory_order_relaxed);
      error_ = nullptr;
      job_ = &job;
      busy_ = threads_.size();
      ++round_;
    }
    wake_.notify_all();
    job(0);
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return busy_ == 0; });
    job_ = nullptr;
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  void serve(unsigned worker) {
    std::uint64_t seen = 0;
    for (;;) {
      const std::function<void(unsigned)>* job = nullptr;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return stop_ || round_ != seen; });
        if (stop_) return;
        seen = round_;
        job = job_;
      }
      (*job)(worker);
      const std::lock_guard lock(mutex_);
      if (--busy_ == 0) done_.notify_one();
    }
  }

  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  const std::function<void(unsigned)>* job_ = nullptr;
  std::exception_ptr error_;
  std::atomic<std::size_t> next_{0};
  std::size_t busy_ = 0;
  std::uint64_t round_ = 0;
  bool stop_ = false;
};

}  // namespace chnsw
