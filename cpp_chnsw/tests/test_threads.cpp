// Threads: builds and searches on several of them, searches of one index from several callers at once, an index that is
// added to after searches. Under ThreadSanitizer this finds races; without it, answers that depend on the threads.

#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "chnsw/index.hpp"
#include "harness.hpp"

namespace {

using chnsw::Index;
using harness::Rows;

std::vector<char> bytes_of(const Index& index, const char* name) {
  const harness::File file(name);
  index.save(file.path());
  return file.read();
}

void same_whatever_the_threads(chnsw::Metric metric, chnsw::Dtype dtype) {
  chnsw::Settings settings;
  settings.dim = 24;
  settings.metric = metric;
  settings.dtype = dtype;
  settings.m = 8;
  settings.ef_construction = 40;
  settings.exact_below = 50;
  const std::vector<Rows> layers = harness::hierarchy({6000, 400, 30}, settings.dim, 1);
  const Rows queries = harness::children(layers[1], 200, 0.4f, 2);
  std::vector<char> first;
  std::vector<chnsw::Hits> hits;
  for (const unsigned threads : {1u, 2u, 4u, 7u}) {
    Index index(settings);
    harness::build(index, layers, threads);
    harness::add(index, 0, harness::children(layers[1], 150, 0.4f, 3), threads);
    const std::vector<char> bytes = bytes_of(index, "threads");
    if (threads == 1) {
      first = bytes;
      hits = harness::search(index, queries, 5, 32, 1);
    }
    CHECK(bytes == first);
    for (const unsigned searching : {1u, 3u, 4u}) {
      const auto again = harness::search(index, queries, 5, 32, searching);
      for (std::size_t l = 0; l < hits.size(); ++l)
        CHECK(again[l].ids == hits[l].ids && again[l].distances == hits[l].distances);
    }
  }
}

void many_callers() {
  chnsw::Settings settings;
  settings.dim = 16;
  settings.m = 8;
  settings.ef_construction = 30;
  settings.dtype = chnsw::Dtype::int8;
  settings.exact_below = 50;
  const std::vector<Rows> layers = harness::hierarchy({2500, 200, 20}, settings.dim, 4);
  Index index(settings);
  harness::build(index, layers, 2);
  const Rows queries = harness::children(layers[1], 40, 0.4f, 5);
  const auto hits = harness::search(index, queries, 5, 20);
  const chnsw::Hits alone = harness::search_layer(index, 0, queries, 5, 20);
  std::vector<std::thread> callers;
  for (unsigned caller = 0; caller < 4; ++caller)
    callers.emplace_back([&, caller] {
      for (int turn = 0; turn < 6; ++turn) {
        if ((turn + static_cast<int>(caller)) % 3 == 0) {
          const chnsw::Hits found = harness::search_layer(index, 0, queries, 5, 20, 2);
          CHECK(found.ids == alone.ids && found.distances == alone.distances);
        } else {
          const auto found = harness::search(index, queries, 5, 20, 1 + caller % 3);
          for (std::size_t l = 0; l < hits.size(); ++l) CHECK(found[l].ids == hits[l].ids);
        }
        harness::inspect(index, 1);
        if (turn == 3) bytes_of(index, ("caller" + std::to_string(caller)).c_str());
      }
    });
  for (std::thread& caller : callers) caller.join();
}

}  // namespace

int main() {
  same_whatever_the_threads(chnsw::Metric::ip, chnsw::Dtype::float32);
  same_whatever_the_threads(chnsw::Metric::l2, chnsw::Dtype::int8);
  many_callers();
  std::printf("threads: the same bytes and answers\n");
}
