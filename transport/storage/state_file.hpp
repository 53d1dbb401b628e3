#pragma once
/// StateFile: the named tensors of a checkpoint, of a file of safetensors or of torch.save(), or of
/// a folder of those (model.safetensors, or model.safetensors.index.json and the files that it
/// names; pytorch_model.bin, or pytorch_model.bin.index.json).

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <weft/type.hpp>

#include "data/files/part_files.hpp"
#include "spmd/tensor/tensor_source.hpp"
#include "transport/format/checkpoint_manifest.hpp"
#include "transport/storage/checkpoint_folder.hpp"

namespace weft {

/// The element types that files have: weft's, and those that are only converted.
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
  std::string dtype_name{};  ///< "f32"; of another dtype as the file has it, "F8_E4M3"
  Shape shape{};
  StateKind kind = StateKind::param;
  std::optional<Sharding> sharding{};  ///< on the mesh of the checkpoint
  /// Of a tensor that weft can't read, whose dtype is `other`: what the file says of it,
  /// "F4[2,3]".
  std::string form{};
  std::int64_t stored_bytes = 0;  ///< of such a tensor

  std::string label() const;   ///< "f32[4,3]", or its form
  std::int64_t bytes() const;  ///< of all elements, as the file has them
};

/// Open for as long as a source of its tensors lives: a checkpoint isn't pruned meanwhile. Used by
/// any thread.
class StateFile : public std::enable_shared_from_this<StateFile> {
 public:
  /// Throws not_found, corrupt, version or io, naming the path.
  static std::shared_ptr<const StateFile> open(const std::string& path);

  const std::string& path() const { return path_; }
  const std::vector<FileTensor>& tensors() const { return tensors_; }
  /// Of safetensors; if there are several files, all that they have.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// Null for other programs' files.
  const CheckpointManifest* checkpoint() const { return has_checksums_ ? &manifest_ : nullptr; }
  /// Of a checkpoint: the mesh that it was saved on.
  const std::optional<Mesh>& mesh() const { return mesh_; }
  /// Whether elements of one dtype can be converted to the other without the loss of a range.
  static bool can_cast(FileDType from, DType to);
  /// Whether two tensors, as those of weights that are tied, are one in the file.
  bool is_same_place(std::size_t a, std::size_t b) const {
    return manifest_.tensors[a].shards == manifest_.tensors[b].shards &&
           tensors_[a].shape == tensors_[b].shape;
  }
  /// The elements of a tensor, converted to `dtype`, which it has or can be cast to.
  SourcePtr source(std::size_t tensor, DType dtype) const;

 private:
  friend class FileSource;
  StateFile() = default;
  /// A tensor of another program's file.
  struct Foreign {
    std::string name{};
    std::string dtype{};  ///< as safetensors has it: "F32"
    std::span<const std::int64_t> sizes{};
    std::uint64_t begin = 0;  ///< in the file
    std::uint64_t bytes = 0;
    std::span<const std::int64_t> strides{};  ///< in elements; empty: row-major
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
  std::string folder_;           // of the files in the manifest
  CheckpointManifest manifest_;  // other programs': each tensor one shard, of a dtype of its size
  bool has_checksums_ = false;
  struct Header {
    std::uint64_t file_bytes = 0;
    std::uint64_t bytes = 0;
    std::uint64_t xxh3 = 0;
  };
  std::vector<Header> headers_;  // of other programs' files: their first bytes as they were read
  std::map<std::size_t, std::vector<std::int64_t>> strides_;  // of tensors that aren't row-major
  std::optional<ReadLock> lock_;                              // of a checkpoint
  std::optional<PartFiles> files_;
  std::vector<FileTensor> tensors_;  // as in the manifest
  std::optional<Mesh> mesh_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace weft
