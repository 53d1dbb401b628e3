#include <weft/sharding/mesh.hpp>

#include <algorithm>
#include <numeric>

#include <fmt/ranges.h>

namespace weft {
namespace {

std::string quoted(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "\"" : ",\"") + name + "\"";
  return text;
}

void check_axes(const std::vector<std::int64_t>& shape, const std::vector<std::string>& names) {
  if (shape.size() != names.size()) {
    fail(Errc::mesh_mismatch,
         "Mesh: shape ({}) has {} axes but axis_names ({}) has {}; give one name per axis",
         fmt::join(shape, ","), shape.size(), quoted(names), names.size());
  }
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (names[i].empty()) {
      fail(Errc::invalid_argument, "Mesh: axis_names[{}] is empty; give every axis a name", i);
    }
    // All text forms write names between quotes without escapes.
    if (std::any_of(names[i].begin(), names[i].end(),
                    [](char c) { return c == '"' || c == '\\' || (c >= 0 && c < ' '); })) {
      fail(Errc::invalid_argument,
           "Mesh: axis name '{}' has a quote, backslash or control character; leave it out",
           names[i]);
    }
    if (std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(i), names[i]) !=
        names.begin() + static_cast<std::ptrdiff_t>(i)) {
      fail(Errc::invalid_argument, "Mesh: axis name \"{}\" is repeated in ({}); names must differ",
           names[i], quoted(names));
    }
    if (shape[i] < 1) {
      fail(Errc::invalid_argument, "Mesh: axis \"{}\" has size {}; a size must be at least 1",
           names[i], shape[i]);
    }
  }
}

int chip_count(const std::vector<std::int64_t>& shape) {
  std::int64_t chips = 1;
  for (const std::int64_t size : shape) {
    if (size > kChipCountMax / chips) {
      fail(Errc::unavailable, "Mesh: shape ({}) has more than {} chips", fmt::join(shape, ","),
           kChipCountMax);
    }
    chips *= size;
  }
  return static_cast<int>(chips);
}

void check_devices(const std::vector<int>& ids, const std::vector<std::int64_t>& shape, int chips) {
  if (static_cast<int>(ids.size()) != chips) {
    fail(Errc::mesh_mismatch,
         "Mesh: device_ids has {} entries but shape ({}) has {} chips; give one id per chip",
         ids.size(), fmt::join(shape, ","), chips);
  }
  std::vector<bool> seen(ids.size(), false);
  for (const int id : ids) {
    if (id < 0 || id >= chips) {
      fail(Errc::invalid_argument,
           "Mesh: device id {} is outside 0..{}; device_ids must be a "
           "permutation of 0..{}",
           id, chips - 1, chips - 1);
    }
    if (seen[static_cast<std::size_t>(id)]) {
      fail(Errc::invalid_argument,
           "Mesh: device id {} is repeated; device_ids must be a "
           "permutation of 0..{}",
           id, chips - 1);
    }
    seen[static_cast<std::size_t>(id)] = true;
  }
}

/// Returns the prime factors in descending order.
std::vector<std::int64_t> prime_factors(std::int64_t n) {
  std::vector<std::int64_t> primes;
  for (std::int64_t p = 2; p * p <= n; ++p) {
    for (; n % p == 0; n /= p) primes.push_back(p);
  }
  if (n > 1) primes.push_back(n);
  std::reverse(primes.begin(), primes.end());
  return primes;
}

void check_hosts(const std::vector<std::int64_t>& hosts, const std::vector<std::int64_t>& shape) {
  if (hosts.size() != shape.size()) {
    fail(Errc::mesh_mismatch,
         "Mesh: hosts ({}) has {} entries but shape ({}) has {}; give one entry per axis",
         fmt::join(hosts, ","), hosts.size(), fmt::join(shape, ","), shape.size());
  }
  for (std::size_t axis = 0; axis < hosts.size(); ++axis) {
    if (hosts[axis] >= 1 && shape[axis] % hosts[axis] == 0) continue;
    fail(Errc::invalid_argument,
         "Mesh: hosts[{}] is {}, but shape[{}] is {}: expected 1 or more hosts of equally many "
         "chips",
         axis, hosts[axis], axis, shape[axis]);
  }
}

}  // namespace

Mesh::Mesh(std::vector<std::int64_t> shape, std::vector<std::string> axis_names,
           std::vector<int> device_ids, const std::vector<std::int64_t>& hosts)
    : shape_(std::move(shape)),
      axis_names_(std::move(axis_names)),
      device_ids_(std::move(device_ids)),
      atom_size_{1},
      atom_stride_{0},
      atom_axis_{-1} {
  check_axes(shape_, axis_names_);
  const int chips = chip_count(shape_);
  if (device_ids_.empty()) {
    device_ids_.resize(static_cast<std::size_t>(chips));
    std::iota(device_ids_.begin(), device_ids_.end(), 0);
  }
  check_devices(device_ids_, shape_, chips);
  if (!hosts.empty()) check_hosts(hosts, shape_);

  std::int64_t stride = chips;
  std::vector<AtomList> axis_atoms(shape_.size());
  int atom_count = 0;
  for (int axis = 0; axis < num_axes(); ++axis) {
    const auto add = [&](std::int64_t prime, bool crosses_hosts) {
      stride /= prime;
      atom_size_.push_back(prime);
      atom_stride_.push_back(stride);
      atom_axis_.push_back(axis);
      if (++atom_count > kAtomCountMax) return;
      axis_atoms[static_cast<std::size_t>(axis)].push_back(static_cast<Atom>(atom_count));
      if (crosses_hosts) dcn_atoms_ = static_cast<AtomMask>(dcn_atoms_ | 1U << atom_count);
    };
    const std::int64_t size = shape_[static_cast<std::size_t>(axis)];
    const std::int64_t parts = hosts.empty() ? 1 : hosts[static_cast<std::size_t>(axis)];
    for (const std::int64_t prime : prime_factors(parts)) add(prime, true);
    for (const std::int64_t prime : prime_factors(size / parts)) add(prime, false);
  }
  if (atom_count > kAtomCountMax) {
    fail(Errc::unavailable,
         "Mesh: the sizes of shape ({}) have {} prime factors together; at most {} are supported",
         fmt::join(shape_, ","), atom_count, kAtomCountMax);
  }
  axis_atoms_ = std::move(axis_atoms);
}

int Mesh::axis_index(std::string_view name) const noexcept {
  const auto found = std::find(axis_names_.begin(), axis_names_.end(), name);
  return found == axis_names_.end() ? -1 : static_cast<int>(found - axis_names_.begin());
}

std::int64_t Mesh::axis_size(std::string_view name) const {
  const int axis = axis_index(name);
  if (axis < 0) {
    fail(Errc::not_found, "Mesh: no axis \"{}\"; the axes are {}", name, quoted(axis_names_));
  }
  return shape_[static_cast<std::size_t>(axis)];
}

std::vector<std::int64_t> Mesh::coords(int position) const {
  WEFT_CHECK(position >= 0 && position < size(), position, size());
  std::vector<std::int64_t> result(shape_.size());
  std::int64_t rest = position;
  for (std::size_t axis = shape_.size(); axis-- > 0;) {
    result[axis] = rest % shape_[axis];
    rest /= shape_[axis];
  }
  return result;
}

int Mesh::position_of(int device_id) const {
  const auto found = std::find(device_ids_.begin(), device_ids_.end(), device_id);
  if (found == device_ids_.end()) {
    fail(Errc::not_found, "Mesh: no device {}; ids are 0..{}", device_id, size() - 1);
  }
  return static_cast<int>(found - device_ids_.begin());
}

std::int64_t Mesh::count(AtomList atoms) const {
  std::int64_t count = 1;
  for (int i = 0; i < atoms.size(); ++i) count *= atom_size(atoms[i]);
  return count;
}

std::int64_t Mesh::count(AtomMask mask) const { return count(list(mask)); }

std::int64_t Mesh::coord(int position, Atom atom) const {
  return position / atom_stride_[atom] % atom_size_[atom];
}

std::int64_t Mesh::index_in(int position, AtomList atoms) const {
  std::int64_t index = 0;
  for (int i = 0; i < atoms.size(); ++i) {
    index = index * atom_size(atoms[i]) + coord(position, atoms[i]);
  }
  return index;
}

std::vector<int> Mesh::group(int position, AtomList atoms) const {
  std::int64_t first = position;
  for (int i = 0; i < atoms.size(); ++i)
    first -= coord(position, atoms[i]) * atom_stride_[atoms[i]];
  std::vector<int> members(static_cast<std::size_t>(count(atoms)));
  for (std::size_t index = 0; index < members.size(); ++index) {
    std::int64_t rest = static_cast<std::int64_t>(index);
    std::int64_t member = first;
    for (int i = atoms.size(); i-- > 0;) {
      member += rest % atom_size(atoms[i]) * atom_stride_[atoms[i]];
      rest /= atom_size(atoms[i]);
    }
    members[index] = static_cast<int>(member);
  }
  return members;
}

AtomList Mesh::list(AtomMask mask) const {
  AtomList atoms;
  for (int atom = 1; atom <= num_atoms(); ++atom) {
    if ((mask >> atom) & 1U) atoms.push_back(static_cast<Atom>(atom));
  }
  return atoms;
}

Mesh Mesh::with_dcn_atoms(AtomMask atoms) const {
  Mesh mesh = *this;
  mesh.dcn_atoms_ = atoms;
  return mesh;
}

std::string Mesh::to_string() const {
  return fmt::format("({}) ({})", fmt::join(shape_, ","), quoted(axis_names_));
}

std::string Mesh::grid() const {
  if (num_axes() == 0) return fmt::format("{}\n", device_ids_[0]);
  const int columns = static_cast<int>(shape_.back());
  const std::size_t width = fmt::formatted_size("{}", size() - 1);
  std::string text = fmt::format("columns: {}\n", axis_names_.back());
  for (int first = 0; first < size(); first += columns) {
    const std::vector<std::int64_t> row = coords(first);
    for (std::size_t axis = 0; axis + 1 < row.size(); ++axis) {
      text += fmt::format("{}={:<{}} ", axis_names_[axis], row[axis],
                          fmt::formatted_size("{}", shape_[axis] - 1));
    }
    text += '|';
    for (int column = 0; column < columns; ++column) {
      text += fmt::format(" {:>{}}", device_ids_[static_cast<std::size_t>(first + column)], width);
    }
    text += '\n';
  }
  return text;
}

}  // namespace weft
