#pragma once
/// StateFile: the named tensors of one of these: a checkpoint; a file of safetensors or of
/// torch.save(); a folder of such files (model.safetensors, or model.safetensors.index.json and the
/// files that it names; pytorch_model.bin, or pytorch_model.bin.index.json).

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

/// The element types of files: weft's own, and those that can only be converted.
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
  std::string dtype_name{};  ///< "f32"; for another dtype its name in the file, "F8_E4M3"
  Shape shape{};
  StateKind kind = StateKind::param;
  std::optional<Sharding> sharding{};  ///< over the checkpoint's mesh
  /// For a tensor that weft can't read, whose dtype is `other`: its description from the file,
  /// "F4[2,3]".
  std::string form{};
  std::int64_t stored_bytes = 0;  ///< size of such a tensor

  std::string label() const;   ///< "f32[4,3]", or its form
  std::int64_t bytes() const;  ///< size of all elements, with the file's dtype
};

/// The file stays open as long as a source of its tensors lives, so a checkpoint isn't removed
/// meanwhile. Any thread may use it.
class StateFile : public std::enable_shared_from_this<StateFile> {
 public:
  /// Throws not_found, corrupt, version or io, naming the path.
  static std::shared_ptr<const StateFile> open(const std::string& path);

  const std::string& path() const { return path_; }
  const std::vector<FileTensor>& tensors() const { return tensors_; }
  /// The metadata of safetensors. If there are several files, it has the entries of all of them.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// Null for files of other programs.
  const CheckpointManifest* checkpoint() const { return has_checksums_ ? &manifest_ : nullptr; }
  /// For a checkpoint: the mesh over which it was saved.
  const std::optional<Mesh>& mesh() const { return mesh_; }
  /// Whether elements of one dtype can be converted to the other without losing range.
  static bool can_cast(FileDType from, DType to);
  /// Whether two tensors are the same one in the file, as tied weights are.
  bool is_same_place(std::size_t a, std::size_t b) const {
    return manifest_.tensors[a].shards == manifest_.tensors[b].shards &&
           tensors_[a].shape == tensors_[b].shape;
  }
  /// Returns the tensor's elements converted to `dtype`. This must be its own dtype or one to which
  /// it can be cast.
  SourcePtr source(std::size_t tensor, DType dtype) const;

 private:
  friend class FileSource;
  StateFile() = default;
  /// A tensor of another program's file.
  struct Foreign {
    std::string name{};
    std::string dtype{};  ///< its name in safetensors: "F32"
    std::span<const std::int64_t> sizes{};
    std::uint64_t begin = 0;  ///< offset in the file
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
  std::string folder_;           // folder of the files in the manifest
  CheckpointManifest manifest_;  // for other programs: each tensor is one shard, with a dtype of
                                 // the same size
  bool has_checksums_ = false;
  struct Header {
    std::uint64_t file_bytes = 0;
    std::uint64_t bytes = 0;
    std::uint64_t xxh3 = 0;
  };
  std::vector<Header> headers_;  // first bytes of other programs' files, as they were read
  std::map<std::size_t, std::vector<std::int64_t>> strides_;  // strides of tensors that aren't
                                                              // row-major
  std::optional<ReadLock> lock_;                              // lock of a checkpoint
  std::optional<PartFiles> files_;
  std::vector<FileTensor> tensors_;  // in the manifest's order
  std::optional<Mesh> mesh_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace weft
