// The Python module: arguments are checked and converted here, the work is done without the interpreter's lock.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <vector>

#include "chnsw/index.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Array2 = nb::ndarray<const float, nb::numpy, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

chnsw::Metric metric_of(const std::string& name) {
  if (name == "ip") return chnsw::Metric::ip;
  if (name == "l2") return chnsw::Metric::l2;
  if (name == "cosine") return chnsw::Metric::cosine;
  throw chnsw::ValueError("no metric '" + name + "'; give 'ip', 'l2' or 'cosine'.");
}
chnsw::Dtype dtype_of(const std::string& name) {
  if (name == "float32") return chnsw::Dtype::float32;
  if (name == "float16") return chnsw::Dtype::float16;
  if (name == "int8") return chnsw::Dtype::int8;
  throw chnsw::ValueError("no dtype '" + name + "'; give 'float32', 'float16' or 'int8'.");
}
const char* name_of(chnsw::Metric metric) {
  return metric == chnsw::Metric::ip ? "ip" : metric == chnsw::Metric::l2 ? "l2" : "cosine";
}
const char* name_of(chnsw::Dtype dtype) {
  return dtype == chnsw::Dtype::float32 ? "float32" : dtype == chnsw::Dtype::float16 ? "float16" : "int8";
}

// Holds the array that the rows lie in.
struct Rows {
  Array2 array;
  chnsw::Matrix matrix() const { return {array.data(), array.shape(0)}; }
};

// A NumPy array of floats (any float type, any strides) as float32 rows of the index's dimension.
Rows rows_of(nb::handle object, std::size_t dim, const std::string& name, bool one_row_allowed = false) {
  const nb::module_ numpy = nb::module_::import_("numpy");
  if (!nb::isinstance(object, numpy.attr("ndarray")))
    throw nb::type_error((name + " must be a NumPy array of floats, of shape (rows, " + std::to_string(dim) + ").")
                             .c_str());
  if (nb::cast<std::string>(nb::object(object.attr("dtype").attr("kind"))) != "f")
    throw nb::type_error((name + " must hold floats, not " + nb::cast<std::string>(nb::object(object.attr("dtype").attr("name"))) +
                          "; use .astype(np.float32).")
                             .c_str());
  nb::object array = nb::borrow(object);
  auto ndim = nb::cast<std::size_t>(array.attr("ndim"));
  if (ndim == 1 && one_row_allowed) {
    array = array.attr("reshape")(1, -1);
    ndim = 2;
  }
  if (ndim != 2)
    throw chnsw::ValueError(name + " must have 2 dimensions (rows, " + std::to_string(dim) + "), not " +
                            std::to_string(ndim) + ".");
  const auto width = nb::cast<std::size_t>(array.attr("shape")[nb::int_(1)]);
  if (width != dim)
    throw chnsw::ValueError(name + " must have vectors of length " + std::to_string(dim) + ", not " +
                            std::to_string(width) + "; the index was made with dim=" + std::to_string(dim) + ".");
  {
    // A value too large for float32 becomes an infinity, which is refused with a sentence later: no warning before it.
    const nb::object quiet = numpy.attr("errstate")("over"_a = "ignore");
    quiet.attr("__enter__")();
    array = numpy.attr("ascontiguousarray")(array, "dtype"_a = numpy.attr("float32"));
    quiet.attr("__exit__")(nb::none(), nb::none(), nb::none());
  }
  return {nb::cast<Array2>(array)};
}

// An integer argument from `least` to `most`, with a sentence for everything else.
std::uint64_t count_of(nb::handle object, const char* name, std::uint64_t least, std::uint64_t most = 0xffffffffu) {
  if (PyBool_Check(object.ptr()) || !PyIndex_Check(object.ptr()))
    throw nb::type_error((std::string(name) + " must be an integer.").c_str());
  const nb::object integer = nb::steal(PyNumber_Index(object.ptr()));
  if (!integer.is_valid()) throw nb::python_error();
  const std::uint64_t value = PyLong_AsUnsignedLongLong(integer.ptr());
  const bool outside = value == static_cast<std::uint64_t>(-1) && PyErr_Occurred() != nullptr;
  PyErr_Clear();
  if (outside || value < least || value > most)
    throw chnsw::ValueError(std::string(name) + " must be an integer from " + std::to_string(least) + " to " +
                            std::to_string(most) + ", not " + nb::cast<std::string>(nb::object(nb::repr(object))) + ".");
  return value;
}
std::uint32_t setting_of(nb::handle object, const char* name, std::uint64_t least) {
  return static_cast<std::uint32_t>(count_of(object, name, least));
}
unsigned threads_of(nb::handle object) {
  return static_cast<unsigned>(std::min<std::size_t>(256, count_of(object, "threads", 0)));
}

nb::list list_of(nb::handle object, const char* otherwise) {
  if (!nb::isinstance(object, nb::module_::import_("collections.abc").attr("Iterable")) ||
      nb::isinstance<nb::str>(object))
    throw nb::type_error(otherwise);
  return nb::list(object);
}

template <class T>
nb::object array_of(std::vector<T>&& values, std::initializer_list<std::size_t> shape) {
  auto* const owned = new std::vector<T>(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T>(owned->data(), shape, owner));
}

nb::tuple hits_of(chnsw::Hits&& hits, std::size_t queries, std::size_t k) {
  return nb::make_tuple(array_of(std::move(hits.ids), {queries, k}), array_of(std::move(hits.distances), {queries, k}));
}

std::filesystem::path path_of(nb::handle object) {
  // os.fsencode gives the bytes that the file system knows the name by (UTF-8, and what is no text as well).
  const nb::object encoded = nb::module_::import_("os").attr("fsencode")(object);
  const nb::bytes bytes = nb::cast<nb::bytes>(encoded);
  const std::string name(bytes.c_str(), bytes.size());
  if (name.empty() || name.find('\0') != std::string::npos)
    throw chnsw::ValueError("the path is empty or holds a null character.");
  return std::filesystem::path(name);
}

nb::dict dict_of(const chnsw::LayerStats& s) {
  nb::dict d;
  d["vectors"] = s.vectors;
  d["links"] = s.links;
  d["mean_degree"] = s.vectors == 0 ? 0.0 : static_cast<double>(s.links) / static_cast<double>(s.vectors);
  d["max_degree"] = s.max_degree;
  d["bytes"] = s.bytes;
  d["exact"] = s.exact;
  d["search_distances"] = s.graph_distances + s.exact_distances;
  return d;
}

nb::dict stats_of(const chnsw::Index& index) {
  const chnsw::Stats stats = index.stats();
  nb::list layers;
  std::uint64_t vectors = 0, links = stats.hidden.links;
  std::uint64_t graph = stats.hidden.graph_distances, exact = stats.hidden.exact_distances;
  for (const auto& layer : stats.layers) {
    layers.append(dict_of(layer));
    vectors += layer.vectors;
    links += layer.links;
    graph += layer.graph_distances;
    exact += layer.exact_distances;
  }
  nb::dict bytes;
  bytes["vectors"] = stats.vector_bytes;
  bytes["graph"] = stats.graph_bytes;
  bytes["traversal"] = stats.traversal_bytes;
  bytes["other"] = stats.other_bytes;
  bytes["total"] = stats.vector_bytes + stats.graph_bytes + stats.traversal_bytes + stats.other_bytes;
  nb::dict search;
  search["queries"] = stats.queries;
  search["distances"] = graph + exact;
  search["graph_distances"] = graph;
  search["exact_distances"] = exact;
  search["distances_per_query"] =
      stats.queries == 0 ? 0.0 : static_cast<double>(graph + exact) / static_cast<double>(stats.queries);
  nb::dict d;
  d["vectors"] = vectors;
  d["links"] = links;
  d["layers"] = layers;
  d["hidden_levels"] = stats.hidden_levels;
  d["hidden"] = dict_of(stats.hidden);
  d["bytes"] = bytes;
  d["build_distances"] = stats.build_distances;
  d["search"] = search;
  d["mmap"] = stats.mapped;
  return d;
}

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "C-HNSW: one navigable graph over all layers of a hierarchy";

  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const chnsw::ValueError& e) {
      PyErr_SetString(PyExc_ValueError, e.what());
    } catch (const chnsw::FileError& e) {
      PyErr_SetString(PyExc_OSError, e.what());
    }
  });

  m.def(
      "simd",
      [](nb::object kind) {
        if (!kind.is_none()) {
          if (!nb::isinstance<nb::str>(kind)) throw nb::type_error("kind must be a string or None.");
          chnsw::use_kernels(nb::cast<std::string>(kind));
        }
        return std::string(chnsw::kernels().name);
      },
      "kind"_a = nb::none(),
      "The SIMD kind in force, after setting it if one is given: 'auto', 'portable', 'avx2' or 'avx512'.");

  nb::class_<chnsw::Index>(m, "Index")
      .def(
          "__init__",
          [](chnsw::Index* self, nb::object dim, const std::string& metric, nb::object m_, nb::object ef_construction,
             nb::object seed, const std::string& dtype, nb::object exact_below, nb::object entries) {
            chnsw::Settings s;
            s.dim = setting_of(dim, "dim", 1);
            s.metric = metric_of(metric);
            s.dtype = dtype_of(dtype);
            s.m = setting_of(m_, "m", 2);
            s.ef_construction = setting_of(ef_construction, "ef_construction", 1);
            s.seed = count_of(seed, "seed", 0, ~std::uint64_t{0});
            if (!exact_below.is_none()) s.exact_below = setting_of(exact_below, "exact_below", 0);
            s.entries = setting_of(entries, "entries", 1);
            new (self) chnsw::Index(s);
          },
          "dim"_a.none(), "metric"_a = "ip", "m"_a.none() = 32, "ef_construction"_a.none() = 100,
           "seed"_a.none() = 0, "dtype"_a = "float32",
          nb::kw_only(), "exact_below"_a = nb::none(), "entries"_a.none() = chnsw::Settings{}.entries)
      .def(
          "build",
          [](chnsw::Index& self, nb::object layers, nb::object threads) {
            if (nb::isinstance<nb::str>(layers) || nb::isinstance(layers, nb::module_::import_("numpy").attr("ndarray")))
              throw nb::type_error("layers must be a list of arrays, bottom first: [entities, communities, …].");
            std::vector<Rows> kept;
            std::vector<chnsw::Matrix> matrices;
            for (nb::handle layer : list_of(layers, "layers must be a list of arrays, bottom first.")) {
              kept.push_back(rows_of(layer, self.settings().dim, "layer " + std::to_string(kept.size())));
              matrices.push_back(kept.back().matrix());
            }
            const unsigned n = threads_of(threads);
            const nb::gil_scoped_release release;
            self.build(matrices, n);
          },
          "layers"_a.none(), "threads"_a.none() = 0)
      .def(
          "search",
          [](const chnsw::Index& self, nb::object queries, nb::object k, nb::object ef, nb::object layers,
             nb::object threads) {
            const Rows rows = rows_of(queries, self.settings().dim, "queries", true);
            const std::size_t count = count_of(k, "k", 1), width = count_of(ef, "ef", 1);
            std::vector<std::uint32_t> wanted;
            if (layers.is_none())
              for (std::size_t l = 0; l < self.layer_count(); ++l) wanted.push_back(static_cast<std::uint32_t>(l));
            else
              for (nb::handle layer : list_of(layers, "layers must be a list of layer numbers, such as [0, 1]."))
                wanted.push_back(setting_of(layer, "a layer", 0));
            const unsigned n = threads_of(threads);
            std::vector<chnsw::Hits> found;
            {
              const nb::gil_scoped_release release;
              found = self.search(rows.matrix(), count, width, wanted, n);
            }
            nb::list result;
            for (auto& hits : found) result.append(hits_of(std::move(hits), rows.matrix().rows, count));
            return result;
          },
          "queries"_a.none(), "k"_a.none(), "ef"_a.none() = 100, "layers"_a = nb::none(), "threads"_a.none() = 0)
      .def(
          "search_layer",
          [](const chnsw::Index& self, nb::object layer, nb::object queries, nb::object k, nb::object ef,
             nb::object threads) {
            const Rows rows = rows_of(queries, self.settings().dim, "queries", true);
            const std::uint32_t wanted = setting_of(layer, "layer", 0);
            const std::size_t count = count_of(k, "k", 1), width = count_of(ef, "ef", 1);
            const std::size_t size = self.layer_size(wanted);
            if (count > size)
              throw chnsw::ValueError("k is " + std::to_string(count) + ", but layer " + std::to_string(wanted) +
                                      " has only " + std::to_string(size) + " vectors; ask for at most so many.");
            const unsigned n = threads_of(threads);
            std::vector<chnsw::Hits> found;
            {
              const nb::gil_scoped_release release;
              found = self.search(rows.matrix(), count, width, {wanted}, n);
            }
            return hits_of(std::move(found[0]), rows.matrix().rows, count);
          },
          "layer"_a.none(), "queries"_a.none(), "k"_a.none(), "ef"_a.none() = 100, "threads"_a.none() = 0)
      .def(
          "add",
          [](chnsw::Index& self, nb::object layer, nb::object vectors, nb::object threads) {
            const Rows rows = rows_of(vectors, self.settings().dim, "vectors", true);
            const std::uint32_t wanted = setting_of(layer, "layer", 0);
            const unsigned n = threads_of(threads);
            std::size_t first;
            {
              const nb::gil_scoped_release release;
              first = self.add(wanted, rows.matrix(), n);
            }
            std::vector<std::int64_t> ids(rows.matrix().rows);
            for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(first + i);
            return array_of(std::move(ids), {rows.matrix().rows});
          },
          "layer"_a.none(), "vectors"_a.none(), "threads"_a.none() = 0)
      .def(
          "save",
          [](const chnsw::Index& self, nb::object path) {
            const std::filesystem::path to = path_of(path);
            const nb::gil_scoped_release release;
            self.save(to);
          },
          "path"_a.none())
      .def_static(
          "load",
          [](nb::object path, bool mmap) {
            const std::filesystem::path from = path_of(path);
            const nb::gil_scoped_release release;
            return chnsw::Index::load(from, mmap);
          },
          "path"_a.none(), "mmap"_a = true)
      .def(
          "neighbors",
          [](const chnsw::Index& self, nb::object layer, nb::object id) {
            auto ids = self.neighbours(setting_of(layer, "layer", 0), static_cast<std::int64_t>(count_of(id, "id", 0)));
            const std::size_t size = ids.size();
            return array_of(std::move(ids), {size});
          },
          "layer"_a.none(), "id"_a.none())
      .def(
          "links",
          [](const chnsw::Index& self, nb::object layer, nb::object id) {
            auto ids = self.links(setting_of(layer, "layer", 0), static_cast<std::int64_t>(count_of(id, "id", 0)));
            const std::size_t size = ids.size();
            return array_of(std::move(ids), {size});
          },
          "layer"_a.none(), "id"_a.none())
      .def(
          "entry", [](const chnsw::Index& self, nb::object layer) { return self.entry(setting_of(layer, "layer", 0)); },
          "layer"_a.none())
      .def("stats", &stats_of)
      .def("__len__", &chnsw::Index::size)
      .def("__repr__",
           [](const chnsw::Index& self) {
             return "Index(dim=" + std::to_string(self.settings().dim) + ", metric='" + name_of(self.settings().metric) +
                    "', dtype='" + name_of(self.settings().dtype) + "', layers=" + std::to_string(self.layer_count()) +
                    ", vectors=" + std::to_string(self.size()) + ")";
           })
      .def_prop_ro("layers",
                   [](const chnsw::Index& self) {
                     nb::list sizes;
                     for (std::size_t l = 0; l < self.layer_count(); ++l) sizes.append(self.layer_size(l));
                     return sizes;
                   })
      .def_prop_ro("dim", [](const chnsw::Index& self) { return self.settings().dim; })
      .def_prop_ro("metric", [](const chnsw::Index& self) { return name_of(self.settings().metric); })
      .def_prop_ro("dtype", [](const chnsw::Index& self) { return name_of(self.settings().dtype); })
      .def_prop_ro("m", [](const chnsw::Index& self) { return self.settings().m; })
      .def_prop_ro("ef_construction", [](const chnsw::Index& self) { return self.settings().ef_construction; })
      .def_prop_ro("seed", [](const chnsw::Index& self) { return self.settings().seed; })
      .def_prop_ro("exact_below", [](const chnsw::Index& self) { return self.settings().exact_below; })
      .def_prop_ro("entries", [](const chnsw::Index& self) { return self.settings().entries; });
}
