#include <weft/sharding/mesh.hpp>

#include <algorithm>
#include <charconv>
#include <functional>
#include <numeric>

#include <fmt/ranges.h>

namespace weft {
namespace {

std::int64_t product(const std::vector<std::int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

/// Returns text such as "2x4", or "data=2,model=4" if `names` has a name for each size.
std::string sizes_text(const std::vector<std::int64_t>& sizes,
                       const std::vector<std::string>& names) {
  if (names.size() != sizes.size()) return fmt::format("{}", fmt::join(sizes, "x"));
  std::string text;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    text += fmt::format("{}{}={}", axis == 0 ? "" : ",", names[axis], sizes[axis]);
  }
  return text;
}

/// Returns a colon and the text of the grid of chips, or "" if the grid is too large to be shown.
std::string grid_of(const std::vector<std::int64_t>& sizes, const std::vector<std::string>& names) {
  if (sizes.size() > 3 || product(sizes) > 256) return "";
  const bool are_named = names.size() == sizes.size();
  return ":\n" +
         Mesh(sizes, are_named ? names : default_axis_names(static_cast<int>(sizes.size()))).grid();
}

std::string workers_text(const std::vector<int>& chips_per_worker) {
  const bool even = std::adjacent_find(chips_per_worker.begin(), chips_per_worker.end(),
                                       std::not_equal_to<>()) == chips_per_worker.end();
  return even ? fmt::format("{} worker(s) x {} chip(s)", chips_per_worker.size(),
                            chips_per_worker.front())
              : fmt::format("workers with {} chips", fmt::join(chips_per_worker, " + "));
}

void check_sizes(std::string_view field, const std::vector<std::int64_t>& sizes) {
  std::int64_t chips = 1;
  for (const std::int64_t size : sizes) {
    if (size < 1 || size > kChipCountMax / chips) {
      fail(Errc::invalid_argument,
           "{} ({}): every size must be at least 1, and their product at most {}", field,
           fmt::join(sizes, "x"), kChipCountMax);
    }
    chips *= size;
  }
}

std::int64_t check_request(const MeshRequest& request) {
  if (request.chips_per_worker.empty()) {
    fail(Errc::invalid_argument, "chips_per_worker is empty; give one entry per worker");
  }
  std::int64_t chips = 0;
  for (std::size_t worker = 0; worker < request.chips_per_worker.size(); ++worker) {
    const int count = request.chips_per_worker[worker];
    if (count < 1) {
      fail(Errc::invalid_argument, "chips_per_worker of worker {} is {}; it must be at least 1",
           worker, count);
    }
    chips += count;
  }
  if (request.data_parallel_size < 0 || request.model_parallel_size < 0) {
    fail(Errc::invalid_argument,
         "data_parallel_size {} and model_parallel_size {} must not be negative; 0 means not given",
         request.data_parallel_size, request.model_parallel_size);
  }
  check_sizes("topology", request.topology);
  check_sizes("mesh_shape", request.mesh_shape);
  return chips;
}

/// Returns the sizes of the axes "data" and "model". If the request lacks a size, derives it from
/// the number of chips.
std::vector<std::int64_t> parallel_shape(const MeshRequest& request, std::int64_t chips) {
  std::int64_t data = request.data_parallel_size;
  std::int64_t model = request.model_parallel_size;
  const auto& [given_field, given] =
      data > 0 ? std::pair("data_parallel_size", data) : std::pair("model_parallel_size", model);
  if (chips % given != 0) {
    fail(Errc::mesh_mismatch,
         "{} is {}, which doesn't divide the {} chips of {}; choose a divisor of {}", given_field,
         given, chips, workers_text(request.chips_per_worker), chips);
  }
  if (data == 0) data = chips / model;
  if (model == 0) model = chips / data;
  if (model != chips / data) {
    fail(Errc::mesh_mismatch,
         "data_parallel_size {} x model_parallel_size {} isn't the {} chips of {}; their product "
         "must be the number of chips (a size that is left out is derived)",
         data, model, chips, workers_text(request.chips_per_worker));
  }
  return {data, model};
}

std::vector<std::int64_t> shape_of(const MeshRequest& request, std::int64_t chips) {
  if (!request.mesh_shape.empty()) return request.mesh_shape;
  const std::vector<int>& workers = request.chips_per_worker;
  if (std::any_of(workers.begin(), workers.end(), [&](int n) { return n != workers.front(); })) {
    fail(Errc::mesh_mismatch,
         "chips_per_worker differs between workers ({}), so no mesh can be derived from it; give "
         "mesh_shape (its product must be {})",
         fmt::join(workers, ","), chips);
  }
  if (request.data_parallel_size > 0 || request.model_parallel_size > 0) {
    return parallel_shape(request, chips);
  }
  if (!request.topology.empty()) return request.topology;
  if (workers.size() == 1) return {chips};
  return {static_cast<std::int64_t>(workers.size()), workers.front()};
}

/// Throws mesh_mismatch if the product of the sizes isn't the number of chips. `names` has the
/// names of the axes, if the request has names.
void check_product(std::string_view field, const std::vector<std::int64_t>& sizes,
                   const std::vector<std::string>& names, const MeshRequest& request,
                   std::int64_t chips) {
  if (sizes.empty() || product(sizes) == chips) return;
  fail(Errc::mesh_mismatch,
       "{} ({}) has {} chips but {} have {}; change num_workers, chips_per_worker or {}{}", field,
       sizes_text(sizes, names), product(sizes), workers_text(request.chips_per_worker), chips,
       field, grid_of(sizes, names));
}

/// Throws mesh_mismatch if the request's data_parallel_size or model_parallel_size differs from the
/// size of the mesh's axis.
void check_claims(const MeshRequest& request, const Mesh& mesh) {
  const auto check = [&](std::string_view field, std::string_view axis, std::int64_t size) {
    if (size == 0) return;
    const std::int64_t actual = mesh.has_axis(axis) ? mesh.axis_size(axis) : 1;
    if (actual != size) {
      fail(Errc::mesh_mismatch,
           "{} is {} but axis \"{}\" of mesh_shape {} has size {}; change one of them, or leave {} "
           "out:\n{}",
           field, size, axis, mesh.to_string(), actual, field, mesh.grid());
    }
  };
  check("data_parallel_size", "data", request.data_parallel_size);
  check("model_parallel_size", "model", request.model_parallel_size);
}

}  // namespace

std::vector<std::int64_t> parse_topology(std::string_view text) {
  std::vector<std::int64_t> sizes;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (true) {
    std::int64_t size = 0;
    const auto [next, error] = std::from_chars(at, end, size);
    if (error != std::errc() || size < 1 || size > kChipCountMax) break;
    sizes.push_back(size);
    if (next == end) return sizes;
    if (*next != 'x') break;
    at = next + 1;
  }
  fail(Errc::invalid_argument,
       "topology \"{}\": expected sizes joined by 'x'; write \"16\", \"4x4\" or \"2x2x4\"", text);
}

std::vector<std::string> default_axis_names(int num_axes) {
  switch (num_axes) {
    case 1: return {"data"};
    case 2: return {"data", "model"};
    case 3: return {"data", "fsdp", "model"};
    default:
      fail(Errc::invalid_argument, "a mesh of {} axes has no default axis_names; give {} names",
           num_axes, num_axes);
  }
}

Mesh make_mesh(const MeshRequest& request) {
  const std::int64_t chips = check_request(request);
  const std::vector<std::int64_t> shape = shape_of(request, chips);
  check_product("mesh_shape", request.mesh_shape, request.axis_names, request, chips);
  check_product("topology", request.topology, {}, request, chips);

  const std::vector<std::string> names = request.axis_names.empty()
                                             ? default_axis_names(static_cast<int>(shape.size()))
                                             : request.axis_names;
  if (names.size() != shape.size()) {
    fail(Errc::invalid_argument,
         "axis_names has {} entries ({}) but the mesh ({}) has {} axes; give one name per axis",
         names.size(), fmt::join(names, ","), fmt::join(shape, ","), shape.size());
  }
  Mesh mesh(shape, names, request.device_ids);
  if (!request.mesh_shape.empty()) check_claims(request, mesh);
  return mesh;
}

}  // namespace weft
