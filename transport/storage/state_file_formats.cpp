// The formats that StateFile reads, and the error messages for other formats.

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <string_view>

#include <weft/tensor/error.hpp>

#include "data/files/envelope.hpp"
#include "data/files/file_bytes.hpp"
#include "data/formats/safetensors.hpp"
#include "data/pytorch/torch_file.hpp"
#include "data/remote/object_cache.hpp"
#include "data/remote/storages.hpp"
#include "transport/storage/state_file.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModelFile = "model.safetensors";
constexpr const char* kModelIndex = "model.safetensors.index.json";
constexpr const char* kTorchFile = "pytorch_model.bin";
constexpr const char* kTorchIndex = "pytorch_model.bin.index.json";
constexpr std::size_t kIndexBytesMax = std::size_t{64} << 20;
/// The number of bytes of a file that are read to find out its format.
constexpr std::size_t kHeadBytes = 512;

constexpr std::string_view kThroughNumpy =
    "write its arrays by numpy.savez(), and make a checkpoint from them by `weft import`";

/// A format of tensor files that weft doesn't read.
struct OtherFormat {
  std::string_view head;       ///< bytes with which such a file begins; "": not fixed
  std::string_view extension;  ///< extension of such a file's name
  std::string_view what;
  std::string_view advice;
};
constexpr std::array kOtherFormats{
    OtherFormat{"GGUF", ".gguf", "a GGUF file",
                "use the model from which it was made, as safetensors"},
    OtherFormat{"\x89HDF\r\n", ".h5", "an HDF5 file, such as Keras writes", kThroughNumpy},
    OtherFormat{"", ".hdf5", "an HDF5 file", kThroughNumpy},
    OtherFormat{"", ".keras", "a Keras file", kThroughNumpy},
    OtherFormat{"", ".onnx", "an ONNX graph", kThroughNumpy},
    OtherFormat{"", ".msgpack", "a file of Flax", kThroughNumpy},
    OtherFormat{"", ".tflite", "a file of TensorFlow Lite", kThroughNumpy},
    OtherFormat{"", ".pb", "a graph of TensorFlow", kThroughNumpy},
    OtherFormat{"\x93NUMPY", ".npy", "one array of NumPy, without a name",
                "give the array a name by numpy.savez(path, name=array), and use `weft import`"},
    OtherFormat{"", ".npz", "an archive of NumPy", "make a checkpoint from it by `weft import`"},
    OtherFormat{"\x1f\x8b", ".gz", "compressed by gzip", "unpack it first"},
    OtherFormat{"\x28\xb5\x2f\xfd", ".zst", "compressed by zstd", "unpack it first"},
    OtherFormat{"\x80", ".pkl", "a Python pickle",
                "save the tensors by torch.save(state_dict, path)"},
};

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Returns whether the file begins as a safetensors file does: with the length of a JSON header,
/// then the header.
bool looks_like_safetensors(std::string_view head) {
  return head.size() > 8 && head[8] == '{' && head.substr(6, 2) == std::string_view("\0\0", 2);
}

/// Throws if the file has a format that weft knows but doesn't read.
void refuse_other_formats(const std::string& path, std::span<const std::byte> bytes) {
  const std::string_view head = text_of(bytes);
  if (is_old_torch_file(bytes)) {
    fail(Errc::version,
         "it is a file of torch.save() from before PyTorch 1.6; write it again: "
         "torch.save(torch.load(path), other)");
  }
  if (looks_like_safetensors(head)) return;
  const auto is_it = [&](const OtherFormat& format) {
    return (!format.head.empty() && head.starts_with(format.head)) ||
           path.ends_with(format.extension);
  };
  const auto found = std::ranges::find_if(kOtherFormats, is_it);
  if (found == kOtherFormats.end()) return;
  fail(Errc::version, "it is {}, which weft doesn't read; {}", found->what, found->advice);
}

std::vector<std::string> keys_of(const std::map<std::string, std::vector<std::string>>& map) {
  std::vector<std::string> keys;
  for (const auto& [key, values] : map) keys.push_back(key);
  return keys;
}

/// Returns the first bytes of the file, at most `bytes_max`.
std::vector<std::byte> read_head(const PartFiles& file, std::uint64_t bytes_max) {
  std::vector<std::byte> head(static_cast<std::size_t>(std::min(bytes_max, file.bytes(0))));
  file.read(0, 0, head);
  return head;
}

bool is_stored(const std::string& path) {
  if (const StoragePtr storage = find_storage(path)) return storage->open(path).has_value();
  std::error_code error;  // a path that can't be inspected counts as missing
  return fs::exists(fs::symlink_status(path, error));
}

/// Returns whether the path is a folder. In an object store, a path that isn't an object counts as
/// a folder.
bool is_folder(const std::string& path) {
  std::error_code error;
  return is_remote(path) ? !is_stored(path) : fs::is_directory(path, error);
}

}  // namespace

std::shared_ptr<const StateFile> StateFile::open(const std::string& given) {
  require_storage(given);
  const std::string path = without_last_slash(given);
  std::shared_ptr<StateFile> file(new StateFile);
  file->path_ = path;
  if (is_folder(path)) {
    file->add_folder(path);
    file->open_files();
    return file;
  }
  if (!is_stored(path)) {
    fail(Errc::not_found,
         "{} doesn't exist: expected a checkpoint's folder, a file of safetensors or of "
         "torch.save(), or a folder with {}",
         path, kModelFile);
  }
  const fs::path at(path);
  const std::string folder = at.has_parent_path() ? at.parent_path().string() : ".";
  if (path.ends_with(".index.json")) {
    file->add_index(folder, at.filename().string());
  } else {
    file->add_file(folder, at.filename().string());
  }
  file->open_files();
  return file;
}

void StateFile::add_folder(const std::string& folder) {
  const std::string at = folder + "/";
  if (is_stored(at + std::string(kManifestName))) return add_checkpoint(folder);
  for (const auto& [index, model] :
       {std::pair(kModelIndex, kModelFile), std::pair(kTorchIndex, kTorchFile)}) {
    if (is_stored(at + index)) return add_index(folder, index);
    if (is_stored(at + model)) return add_file(folder, model);
  }
  const auto within = list_checkpoints(folder);
  fail(Errc::not_found, "{} has no {}, {}, {} or {}{}", folder, kManifestName, kModelFile,
       kModelIndex, kTorchFile,
       within.empty() ? "" : "; it holds checkpoints, the last of them " + within.back().path);
}

void StateFile::add_file(const std::string& folder, const std::string& file) {
  folder_ = local_folder(folder, {file});
  const PartFiles opened(folder_, {file});
  const std::vector<std::byte> head = read_head(opened, kHeadBytes);
  const std::string path = folder + "/" + file;
  manifest_.files.push_back(file);
  try {
    if (text_of(head).starts_with("PK")) return add_torch(opened);
    refuse_other_formats(path, head);
    add_safetensors(opened);
  } catch (const Error& e) {
    fail(e.code(), "{}: {}", path, e.what());
  }
}

void StateFile::add_safetensors(const PartFiles& opened) {
  const std::uint64_t file_bytes = opened.bytes(0);
  const std::vector<std::byte> bytes =
      read_head(opened, safetensors_header_bytes(read_head(opened, 8), file_bytes));
  headers_.push_back({file_bytes, bytes.size(), xxh3(bytes)});
  SafetensorsHeader header = read_safetensors_header(bytes, file_bytes);
  metadata_.merge(header.metadata);
  for (const SafetensorsEntry& entry : header.tensors) {
    add({.name = entry.name,
         .dtype = entry.dtype,
         .sizes = entry.sizes,
         .begin = entry.begin,
         .bytes = entry.end - entry.begin});
  }
}

void StateFile::add_torch(const PartFiles& opened) {
  const std::uint64_t file_bytes = opened.bytes(0);
  const std::vector<std::byte> head = read_head(opened, kHeadBytes);
  headers_.push_back({file_bytes, head.size(), xxh3(head)});
  const ReadAt read = [&](std::uint64_t offset, std::span<std::byte> out) {
    opened.read(0, offset, out);
  };
  for (const TorchTensor& tensor : read_torch_file(file_bytes, read)) {
    const PickledTensor& pickled = tensor.pickled;
    add({.name = pickled.name,
         .dtype = pickled.dtype,
         .sizes = pickled.sizes,
         .begin = tensor.begin,
         .bytes = pickled.bytes(),
         .strides = tensor.is_row_major() ? std::span<const std::int64_t>() : pickled.strides});
  }
}

/// Adds the tensors of several files. The index `file` says which file has which tensor.
void StateFile::add_index(const std::string& folder, const std::string& file) {
  const std::string path = folder + "/" + file;
  std::map<std::string, std::string> file_of;
  try {
    file_of = read_safetensors_index(read_file_bytes(local_copy(path), kIndexBytesMax));
  } catch (const Error& e) {
    fail(e.code(), "{}: {}", path, e.what());
  }
  std::map<std::string, std::vector<std::string>> names_in;
  for (const auto& [name, in] : file_of) names_in[in].push_back(name);
  (void)local_folder(folder, keys_of(names_in));
  for (const auto& [in, names] : names_in) {
    const std::size_t first = tensors_.size();
    add_file(folder, in);
    std::size_t found = 0;
    for (std::size_t i = first; i < tensors_.size(); ++i) {
      const auto said = file_of.find(tensors_[i].name);
      if (said == file_of.end() || said->second != in) {
        fail(Errc::corrupt, "{}: {} has '{}', but the index says {}", path, in, tensors_[i].name,
             said == file_of.end() ? "nothing about this tensor"
                                   : "that this tensor is in " + said->second);
      }
      ++found;
    }
    for (const std::string& name : names) {
      const auto is_it = [&](const FileTensor& tensor) { return tensor.name == name; };
      if (found == names.size()) break;
      if (std::none_of(tensors_.begin() + static_cast<std::ptrdiff_t>(first), tensors_.end(),
                       is_it)) {
        fail(Errc::corrupt, "{}: '{}' isn't in {}, although the index says so", path, name, in);
      }
    }
  }
}

}  // namespace weft
