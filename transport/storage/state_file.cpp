#include "transport/storage/state_file.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <string_view>

#include <weft/error.hpp>

#include "spmd/program/element.hpp"
#include "transport/foreign/safetensors.hpp"
#include "transport/format/envelope.hpp"
#include "transport/format/file_bytes.hpp"
#include "transport/storage/box_runs.hpp"
#include "transport/storage/checkpoint_folder.hpp"
#include "transport/storage/checkpoint_reader.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModelFile = "model.safetensors";
constexpr const char* kModelIndex = "model.safetensors.index.json";
constexpr std::size_t kIndexBytesMax = std::size_t{64} << 20;

struct DTypeFacts {
  FileDType dtype;
  std::string_view name;
  std::string_view safetensors;
  std::int64_t bytes;
  bool is_floating;
  bool is_unsigned;
};
constexpr std::array kDTypes{
    DTypeFacts{FileDType::pred, "pred", "BOOL", 1, false, false},
    DTypeFacts{FileDType::i32, "i32", "I32", 4, false, false},
    DTypeFacts{FileDType::u32, "u32", "U32", 4, false, true},
    DTypeFacts{FileDType::i64, "i64", "I64", 8, false, false},
    DTypeFacts{FileDType::bf16, "bf16", "BF16", 2, true, false},
    DTypeFacts{FileDType::f32, "f32", "F32", 4, true, false},
    DTypeFacts{FileDType::f64, "f64", "F64", 8, true, false},
    DTypeFacts{FileDType::f16, "f16", "F16", 2, true, false},
    DTypeFacts{FileDType::i8, "i8", "I8", 1, false, false},
    DTypeFacts{FileDType::u8, "u8", "U8", 1, false, true},
    DTypeFacts{FileDType::i16, "i16", "I16", 2, false, false},
    DTypeFacts{FileDType::u16, "u16", "U16", 2, false, true},
};

const DTypeFacts& facts_of(FileDType dtype) { return kDTypes[static_cast<std::size_t>(dtype)]; }

/// A dtype of weft whose elements are as large.
DType stand_in(std::int64_t bytes) {
  constexpr std::array kBySize{DType::pred, DType::bf16, DType::f32, DType::f64};
  return kBySize[static_cast<std::size_t>(std::countr_zero(static_cast<std::uint64_t>(bytes)))];
}

template <typename T>
double value_of(const std::byte* element) {
  T value;
  std::memcpy(&value, element, sizeof value);
  return static_cast<double>(value);
}

double load_file_element(FileDType dtype, const std::byte* element) {
  switch (dtype) {
    case FileDType::i16: return value_of<std::int16_t>(element);
    case FileDType::u16: return value_of<std::uint16_t>(element);
    default: return load_element(static_cast<DType>(dtype), element);
  }
}

/// What comes before the data of a safetensors file.
std::vector<std::byte> read_header(const PartFiles& file) {
  const std::uint64_t file_bytes = file.bytes(0);
  std::vector<std::byte> first(static_cast<std::size_t>(std::min<std::uint64_t>(8, file_bytes)));
  file.read(0, 0, first);
  std::vector<std::byte> header(safetensors_header_bytes(first, file_bytes));
  file.read(0, 0, header);
  return header;
}

}  // namespace

static_assert([] {
  for (std::size_t i = 0; i < kDTypes.size(); ++i) {
    if (static_cast<std::size_t>(kDTypes[i].dtype) != i) return false;
  }
  return kDTypes.size() == static_cast<std::size_t>(FileDType::other) &&
         static_cast<std::size_t>(FileDType::i16) == kDTypeCount;
}());

/// Reads boxes of one tensor of a file.
class FileSource : public TensorSource {
 public:
  FileSource(std::shared_ptr<const StateFile> file, std::size_t tensor, DType dtype)
      : file_(std::move(file)), tensor_(tensor), dtype_(dtype) {}

  void read(std::span<const Target> targets) const override {
    const FileTensor& tensor = file_->tensors_[tensor_];
    const bool converts = tensor.dtype != static_cast<FileDType>(dtype_);
    const std::int64_t from_bytes = facts_of(tensor.dtype).bytes;
    std::vector<std::vector<std::byte>> unconverted;
    std::vector<WantedBox> wanted;
    for (const Target& target : targets) {
      WantedBox& box = wanted.emplace_back(WantedBox{tensor_, target.placed, target.memory});
      if (!converts) continue;
      const Shape& dims = target.placed.box.dims;
      auto& elements =
          unconverted.emplace_back(static_cast<std::size_t>(dims.num_elements() * from_bytes));
      box.placed.room = dims;
      box.memory = elements.data();
    }
    (void)read_boxes(*file_->files_, file_->manifest_, wanted, {.verify = file_->has_checksums_});
    for (std::size_t i = 0; i < unconverted.size(); ++i) {
      convert(unconverted[i], tensor.dtype, targets[i]);
    }
    if (tensor.dtype == FileDType::pred && !file_->has_checksums_) {
      for (const Target& target : targets) require_pred(target);
    }
  }

 private:
  /// Another program's file may have anything.
  void require_pred(const Target& target) const {
    const Box& box = target.placed.box;
    BoxRuns(box, target.placed)
        .each(0, box.dims.num_elements(),
              [&](std::int64_t, std::int64_t placed, std::int64_t count) {
                for (const std::byte element : std::span(target.memory + placed, count)) {
                  if (element <= std::byte{1}) continue;
                  fail(Errc::corrupt, "{}: '{}' is BOOL and has an element {}: expected 0 or 1",
                       file_->path_, file_->tensors_[tensor_].name, std::to_integer<int>(element));
                }
              });
  }

  void convert(const std::vector<std::byte>& elements, FileDType from, const Target& target) const {
    const std::int64_t from_bytes = facts_of(from).bytes;
    const std::int64_t to_bytes = byte_size(dtype_);
    const Box& box = target.placed.box;
    const BoxRuns runs(box, target.placed);
    runs.each(0, box.dims.num_elements(),
              [&](std::int64_t stored, std::int64_t placed, std::int64_t count) {
                const std::byte* source = elements.data() + stored * from_bytes;
                std::byte* to = target.memory + placed * to_bytes;
                for (std::int64_t i = 0; i < count; ++i) {
                  store_element(dtype_, load_file_element(from, source + i * from_bytes),
                                to + i * to_bytes);
                }
              });
  }

  const std::shared_ptr<const StateFile> file_;
  const std::size_t tensor_;
  const DType dtype_;
};

std::string FileTensor::label() const {
  std::string dims = shape.to_string();
  for (char& c : dims) c = c == 'x' ? ',' : c;
  return fmt::format("{}[{}]", dtype_name, dims);
}

std::int64_t FileTensor::bytes() const {
  return dtype == FileDType::other ? 0 : shape.num_elements() * facts_of(dtype).bytes;
}

std::shared_ptr<const StateFile> StateFile::open(const std::string& path) {
  std::shared_ptr<StateFile> file(new StateFile);
  file->path_ = path;
  const fs::path at(path);
  std::error_code error;  // what can't be looked at isn't there
  if (fs::is_directory(at, error)) {
    if (fs::exists(at / kManifestName, error)) {
      file->add_checkpoint(path);
    } else if (fs::exists(at / kModelIndex, error)) {
      file->add_safetensors_index(path, kModelIndex);
    } else if (fs::exists(at / kModelFile, error)) {
      file->add_safetensors(path, kModelFile);
    } else {
      const auto within = list_checkpoints(path);
      fail(Errc::not_found, "{} has no {}, {} or {}{}", path, kManifestName, kModelFile,
           kModelIndex,
           within.empty() ? "" : "; it holds checkpoints, the last of them " + within.back().path);
    }
    file->open_files();
    return file;
  }
  if (!fs::exists(at, error)) {
    fail(
        Errc::not_found,
        "{} doesn't exist: expected a checkpoint's folder, a safetensors file, or a folder with {}",
        path, kModelFile);
  }
  const std::string folder = at.has_parent_path() ? at.parent_path().string() : ".";
  if (path.ends_with(".index.json")) {
    file->add_safetensors_index(folder, at.filename().string());
  } else {
    file->add_safetensors(folder, at.filename().string());
  }
  file->open_files();
  return file;
}

/// At once, since they may be removed before the first use, or replaced: those without checksums
/// are looked at again.
void StateFile::open_files() {
  files_.emplace(folder_, manifest_.files);
  files_->open();
  for (std::uint32_t i = 0; i < headers_.size(); ++i) {
    std::vector<std::byte> header(headers_[i].bytes);
    files_->require(i, 0, headers_[i].bytes);
    files_->read(i, 0, header);
    if (files_->bytes(i) == headers_[i].file_bytes && xxh3(header) == headers_[i].xxh3) continue;
    fail(Errc::io, "{} was changed while it was opened", files_->path(i));
  }
}

void StateFile::add_checkpoint(const std::string& folder) {
  folder_ = folder;
  lock_.emplace(folder);
  manifest_ = read_manifest(folder);
  has_checksums_ = true;
  mesh_ = manifest_.mesh();
  for (const StoredTensor& tensor : manifest_.tensors) {
    tensors_.push_back({.name = tensor.name,
                        .dtype = static_cast<FileDType>(tensor.type.dtype),
                        .dtype_name = std::string(to_string(tensor.type.dtype)),
                        .shape = tensor.type.shape,
                        .kind = tensor.kind,
                        .sharding = tensor.sharding});
  }
}

void StateFile::add_safetensors(const std::string& folder, const std::string& file) {
  folder_ = folder;
  const std::string path = folder + "/" + file;
  try {
    const PartFiles opened(folder, {file});
    const std::uint64_t file_bytes = opened.bytes(0);
    const std::vector<std::byte> bytes = read_header(opened);
    headers_.push_back({file_bytes, bytes.size(), xxh3(bytes)});
    const auto number = static_cast<std::uint32_t>(manifest_.files.size());
    manifest_.files.push_back(file);
    SafetensorsHeader header = read_safetensors_header(bytes, file_bytes);
    metadata_.merge(header.metadata);
    for (const SafetensorsEntry& entry : header.tensors) {
      FileTensor tensor{.name = entry.name, .dtype_name = entry.dtype, .shape = entry.shape};
      for (const DTypeFacts& facts : kDTypes) {
        if (facts.safetensors != entry.dtype) continue;
        tensor.dtype = facts.dtype;
        tensor.dtype_name = facts.name;
      }
      const std::int64_t element_bytes =
          tensor.dtype == FileDType::other ? 1 : facts_of(tensor.dtype).bytes;
      const PlacedBox whole = whole_box(entry.shape);
      manifest_.tensors.push_back({.name = entry.name,
                                   .type = {stand_in(element_bytes), entry.shape},
                                   .shards = {{.offsets = whole.box.offsets,
                                               .dims = whole.box.dims,
                                               .file = number,
                                               .file_offset = entry.begin,
                                               .frame_bytes = entry.end - entry.begin}}});
      tensors_.push_back(std::move(tensor));
    }
  } catch (const Error& e) {
    fail(e.code(), "{}: {}", path, e.what());
  }
}

void StateFile::add_safetensors_index(const std::string& folder, const std::string& file) {
  const std::string path = folder + "/" + file;
  std::map<std::string, std::string> file_of;
  try {
    file_of = read_safetensors_index(read_file_bytes(path, kIndexBytesMax));
  } catch (const Error& e) {
    fail(e.code(), "{}: {}", path, e.what());
  }
  std::map<std::string, std::vector<std::string>> names_in;
  for (const auto& [name, in] : file_of) names_in[in].push_back(name);
  for (const auto& [in, names] : names_in) {
    const std::size_t first = tensors_.size();
    add_safetensors(folder, in);
    std::size_t found = 0;
    for (std::size_t i = first; i < tensors_.size(); ++i) {
      const auto said = file_of.find(tensors_[i].name);
      if (said == file_of.end() || said->second != in) {
        fail(Errc::corrupt, "{}: {} has '{}', of which the index says {}", path, in,
             tensors_[i].name, said == file_of.end() ? "nothing" : "that it is in " + said->second);
      }
      ++found;
    }
    for (const std::string& name : names) {
      const auto is_it = [&](const FileTensor& tensor) { return tensor.name == name; };
      if (found == names.size()) break;
      if (std::none_of(tensors_.begin() + static_cast<std::ptrdiff_t>(first), tensors_.end(),
                       is_it)) {
        fail(Errc::corrupt, "{}: '{}' isn't in {}, as the index says", path, name, in);
      }
    }
  }
}

bool StateFile::can_cast(FileDType from, DType to) {
  if (from == FileDType::other) return false;
  if (from == static_cast<FileDType>(to)) return true;
  const DTypeFacts& facts = facts_of(from);
  if (facts.is_floating) return is_floating(to);
  if (from == FileDType::pred || from == FileDType::i64 || is_floating(to)) return false;
  if (to == DType::i64) return true;
  if (facts.bytes == 4) return false;
  return to == DType::i32 || (to == DType::u32 && facts.is_unsigned);
}

SourcePtr StateFile::source(std::size_t tensor, DType dtype) const {
  return std::make_shared<const FileSource>(shared_from_this(), tensor, dtype);
}

}  // namespace weft
