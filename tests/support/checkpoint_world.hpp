#pragma once
/// Saves and loads trees of tensors on simulated chips, for tests of checkpoints.

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <weft/sharding/mesh.hpp>

#include "data/files/file_system.hpp"
#include "tests/support/temporary_folder.hpp"
#include "transport/format/checkpoint_manifest.hpp"
#include "transport/storage/shard_owners.hpp"

namespace weft::testing {

using Random = std::mt19937_64;

struct TreeTensor {
  std::string name{};
  TensorType type{};
  std::vector<std::byte> elements{};  ///< the elements of the global tensor, row-major
};
using Tree = std::vector<TreeTensor>;

/// Makes tensors of up to `elements_max` elements. They include scalars, dims of 0 and 1, and all
/// dtypes.
Tree random_tree(Random& random, std::int64_t elements_max = 2000);
Mesh random_mesh(Random& random);
Sharding random_sharding(Random& random, const Mesh& mesh, const Shape& shape);
std::vector<Sharding> random_shardings(Random& random, const Mesh& mesh, const Tree& tree);

/// Returns the shard of the chip at `position`. Its padding isn't zero.
std::vector<std::byte> shard_of(const TreeTensor& tensor, const Sharding& sharding,
                                const Mesh& mesh, int position);

struct SaveOptions {
  std::uint64_t step = 1;
  int workers = 1;  ///< a divisor of the mesh's size
  int threads = 2;
  int attempt = 0;
  /// If true, save_tree() joins the manifest from the tables of the parts, so `files` must write to
  /// the system's files. If false, it makes the manifest without the tables.
  bool has_tables = true;
};
/// Writes the tree as shards on a mesh, with one part per worker. Returns the checkpoint's path.
std::string save_tree(FileSystem& files, const std::string& folder, const Tree& tree,
                      const Mesh& mesh, const std::vector<Sharding>& shardings,
                      const SaveOptions& options);

/// Reads each chip's shards on a mesh. Returns the names of tensors that differ from those in
/// `tree`.
std::vector<std::string> differing(const std::string& checkpoint, const Tree& tree,
                                   const Mesh& mesh, const std::vector<Sharding>& shardings);

}  // namespace weft::testing
