#pragma once
/// StateFile: the named tensors of a checkpoint, of a safetensors file, or of a file of
/// torch.save(). A StateFile can also be a folder of such files: model.safetensors, or
/// model.safetensors.index.json and the files that it names; pytorch_model.bin, or
/// pytorch_model.bin.index.json and the files that it names.

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <weft/tensor/type.hpp>

#include "data/files/part_files.hpp"
#include "spmd/tensor/tensor_source.hpp"
#include "transport/format/checkpoint_manifest.hpp"
#include "transport/storage/checkpoint_folder.hpp"

namespace weft {

/// The element types in files: weft's own types, and types that weft can only convert from.
enum class FileDType : std::uint8_t {
  pred,
  i32,
  u32,
  i64,
  bf16,
  f32,
  f64,
  f16,
  i8,
  u8,
  i16,
  u16,
  other
};

struct FileTensor {
  std::string name{};
  FileDType dtype = FileDType::other;
  /// "f32"; for a dtype that weft lacks, its name in the file: "F8_E4M3".
  std::string dtype_name{};
  Shape shape{};
  StateKind kind = StateKind::param;
  std::optional<Sharding> sharding{};  ///< sharding on the checkpoint's mesh
  /// If weft can't read the tensor, and `dtype` is `other`: its description in the file, such as
  /// "F4[2,3]".
  std::string form{};
  std::int64_t stored_bytes = 0;  ///< size of a tensor whose dtype is `other`

  std::string label() const;   ///< returns "f32[4,3]", or `form`
  std::int64_t bytes() const;  ///< returns the size of all elements in the file's dtype
};

/// Any thread may use a StateFile. The files stay open while any source of a tensor lives, so a
/// checkpoint isn't removed during that time.
class StateFile : public std::enable_shared_from_this<StateFile> {
 public:
  /// Opens a file or folder. Throws not_found, corrupt, version or io, with the path.
  static std::shared_ptr<const StateFile> open(const std::string& path);

  const std::string& path() const { return path_; }
  const std::vector<FileTensor>& tensors() const { return tensors_; }
  /// Returns the metadata of all safetensors files.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// Returns the checkpoint's manifest; null for files of other programs.
  const CheckpointManifest* checkpoint() const { return has_checksums_ ? &manifest_ : nullptr; }
  /// Returns the mesh on which the checkpoint was saved.
  const std::optional<Mesh>& mesh() const { return mesh_; }
  /// Returns whether elements of dtype `from` can be converted to `to` without loss of range.
  static bool can_cast(FileDType from, DType to);
  /// Returns whether two tensors are at the same place in the file, as tied weights are.
  bool is_same_place(std::size_t a, std::size_t b) const {
    return manifest_.tensors[a].shards == manifest_.tensors[b].shards &&
           tensors_[a].shape == tensors_[b].shape;
  }
  /// Returns the tensor's elements, converted to `dtype`: its own dtype, or one for which
  /// can_cast() is true.
  SourcePtr source(std::size_t tensor, DType dtype) const;

 private:
  friend class FileSource;
  StateFile() = default;
  /// A tensor in another program's file.
  struct Foreign {
    std::string name{};
    std::string dtype{};  ///< the dtype's name in safetensors: "F32"
    std::span<const std::int64_t> sizes{};
    std::uint64_t begin = 0;  ///< offset in the file, in bytes
    std::uint64_t bytes = 0;
    std::span<const std::int64_t> strides{};  ///< strides in elements; empty: row-major
  };
  void open_files();
  void add_checkpoint(const std::string& folder);
  void add_folder(const std::string& folder);
  void add_file(const std::string& folder, const std::string& file);
  void add_safetensors(const PartFiles& opened);
  void add_torch(const PartFiles& opened);
  void add_index(const std::string& folder, const std::string& file);
  void add(const Foreign& tensor);

  std::string path_;
  std::string folder_;  // the folder of the manifest's files
  // For other programs: each tensor is one shard, with a dtype of the same size.
  CheckpointManifest manifest_;
  bool has_checksums_ = false;
  struct Header {
    std::uint64_t file_bytes = 0;
    std::uint64_t bytes = 0;
    std::uint64_t xxh3 = 0;
  };
  std::vector<Header> headers_;  // first bytes of other programs' files
  // The strides of the tensors that aren't in row-major order, by the tensor's index.
  std::map<std::size_t, std::vector<std::int64_t>> strides_;
  std::optional<ReadLock> lock_;  // lock on a checkpoint
  std::optional<PartFiles> files_;
  std::vector<FileTensor> tensors_;  // in the manifest's order
  std::optional<Mesh> mesh_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace weft
