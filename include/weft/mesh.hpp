#pragma once
/// Mesh: chips arranged in a grid with named axes (jax.sharding.Mesh, torch_xla.spmd.Mesh).

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weft/atom.hpp>

namespace weft {

/// Most chips that a mesh can have.
inline constexpr std::int64_t kChipCountMax = 1 << 20;

/// An immutable value: the shape, the names of the axes and the order of the chips. It holds no
/// device. A chip's *position* is its row-major index in the grid; `device_ids()[position]` is the
/// chip that stands there.
class Mesh {
 public:
  /// `shape` and `axis_names` have one entry per axis; `device_ids` (default 0, 1, 2, ...) has
  /// product(shape) distinct entries that are a permutation of 0..n-1.
  /// Throws invalid_argument for an empty or repeated axis name or one with a quote, backslash
  /// or control character, a size below 1 or a device list
  /// that repeats or misses an id; mesh_mismatch where the counts don't agree; unavailable for more
  /// than kChipCountMax chips or kAtomCountMax atoms.
  Mesh(std::vector<std::int64_t> shape, std::vector<std::string> axis_names,
       std::vector<int> device_ids = {});

  const std::vector<std::int64_t>& shape() const { return shape_; }
  const std::vector<std::string>& axis_names() const { return axis_names_; }
  const std::vector<int>& device_ids() const { return device_ids_; }
  /// The device id of the chip at `position`, from 0 to size() - 1.
  int device_at(int position) const { return device_ids_[static_cast<std::size_t>(position)]; }

  /// Number of axes, number of chips.
  int num_axes() const { return static_cast<int>(shape_.size()); }
  int size() const { return static_cast<int>(device_ids_.size()); }

  /// -1 if the mesh has no such axis.
  int axis_index(std::string_view name) const noexcept;
  bool has_axis(std::string_view name) const noexcept { return axis_index(name) >= 0; }
  /// Throws not_found; the message lists the axes that exist.
  std::int64_t axis_size(std::string_view name) const;

  /// A position's coordinates along the axes.
  std::vector<std::int64_t> coords(int position) const;
  /// The position of a device id.
  int position_of(int device_id) const;

  /// Atoms 1..num_atoms(); see atom.hpp. Within an axis larger primes are major; an axis of size 1
  /// has no atoms.
  int num_atoms() const { return static_cast<int>(atom_size_.size()) - 1; }
  AtomMask all_atoms() const { return static_cast<AtomMask>((2U << num_atoms()) - 2); }
  std::int64_t atom_size(Atom atom) const { return atom_size_[atom]; }
  int atom_axis(Atom atom) const { return atom_axis_[atom]; }
  AtomList axis_atoms(int axis) const { return axis_atoms_[static_cast<std::size_t>(axis)]; }
  /// Product of the sizes of the atoms.
  std::int64_t count(AtomList atoms) const;
  std::int64_t count(AtomMask mask) const;
  /// Coordinate of a position along one atom.
  std::int64_t coord(int position, Atom atom) const;
  /// Index of a position within `atoms` read as a mixed-radix number, the first atom major.
  std::int64_t index_in(int position, AtomList atoms) const;
  /// The positions that agree with `position` on every atom outside `atoms`, ordered by
  /// index_in(., atoms).
  std::vector<int> group(int position, AtomList atoms) const;
  /// The atoms of the mask in ascending order.
  AtomList list(AtomMask mask) const;

  /// The atoms that cross the network between hosts; none unless a HybridMesh has made the mesh.
  AtomMask dcn_atoms() const { return dcn_atoms_; }
  /// A copy of this mesh whose `atoms` cross the network.
  Mesh with_dcn_atoms(AtomMask atoms) const;

  /// "(4,4) (\"data\",\"model\")".
  std::string to_string() const;
  /// The grid of device ids with the axes' names, one row a line.
  std::string grid() const;

  friend bool operator==(const Mesh&, const Mesh&) = default;

 private:
  std::vector<std::int64_t> shape_;
  std::vector<std::string> axis_names_;
  std::vector<int> device_ids_;
  std::vector<AtomList> axis_atoms_;
  std::vector<std::int64_t> atom_size_;    // [0] unused
  std::vector<std::int64_t> atom_stride_;  // in positions
  std::vector<int> atom_axis_;
  AtomMask dcn_atoms_ = 0;
};

// Topology strings ("4x4") and the rule that makes a mesh from workers and chips.

/// "16", "4x4", "2x2x4" -> sizes. Throws invalid_argument, quoting the text, for anything else.
std::vector<std::int64_t> parse_topology(std::string_view text);

/// ("data"), ("data","model"), ("data","fsdp","model"): the names an axis gets by default.
std::vector<std::string> default_axis_names(int num_axes);

/// What decides the shape of a job's mesh; empty or 0 means not given.
struct MeshRequest {
  std::vector<int> chips_per_worker{};  ///< one entry per worker, at least one
  std::vector<std::int64_t> topology{};
  std::vector<std::int64_t> mesh_shape{};
  std::vector<std::string> axis_names{};
  std::int64_t data_parallel_size = 0;
  std::int64_t model_parallel_size = 0;
};

/// The mesh of a job. In order: mesh_shape; data/model_parallel_size (a missing one follows from
/// the chip count); topology; else (workers, chips) named ("data","model"), or (chips,) named
/// ("data",) for one worker. Every size that is given must agree with the others and with the
/// number of chips: throws mesh_mismatch with both numbers (and the grid where there is one),
/// invalid_argument for names that don't fit. Workers with different chip counts need a mesh_shape.
Mesh make_mesh(const MeshRequest& request);

}  // namespace weft
