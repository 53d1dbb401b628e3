#include "transport/storage/state_file.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string_view>

#include <fmt/ranges.h>
#include <weft/tensor/error.hpp>

#include "data/files/envelope.hpp"
#include "data/remote/object_cache.hpp"
#include "data/remote/storages.hpp"
#include "spmd/program/element.hpp"
#include "transport/storage/box_runs.hpp"
#include "transport/storage/checkpoint_reader.hpp"

namespace weft {
namespace {

/// The number of bytes by which a tensor may be larger than its file. It may be larger because
/// several of its elements may share a place in the file.
constexpr std::uint64_t kSharedBytesMax = std::uint64_t{64} << 20;

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

/// Returns a dtype of weft whose elements have `bytes` bytes.
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

/// Returns the sizes as a Shape; std::nullopt if they aren't possible sizes of a Shape.
std::optional<Shape> shape_of(std::span<const std::int64_t> sizes) {
  try {
    return Shape(sizes);
  } catch (const Error&) {
    return std::nullopt;
  }
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
    if (const auto strides = file_->strides_.find(tensor_); strides != file_->strides_.end()) {
      for (const Target& target : targets) {
        convert(gather(target.placed.box, strides->second), tensor.dtype, target);
      }
      return require_preds(targets);
    }
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
    require_preds(targets);
  }

  /// Returns a hash that stands for the tensor's contents. The hash covers a checkpoint's
  /// checksums; for other files it covers only some blocks of elements.
  std::uint64_t digest() const override {
    std::vector<std::uint64_t> words{static_cast<std::uint64_t>(dtype_)};
    for (const StoredShard& shard : file_->manifest_.tensors[tensor_].shards) {
      words.insert(words.end(), shard.offsets.begin(), shard.offsets.end());
      words.insert(words.end(), shard.dims.begin(), shard.dims.end());
      if (file_->has_checksums_) {
        words.push_back(shard.payload_xxh3);
      } else {
        add_blocks(shard, words);
      }
    }
    return xxh3(std::as_bytes(std::span(words)));
  }

 private:
  /// Returns the number of bytes from the shard's first element to its last. It is larger than the
  /// shard if the elements aren't contiguous.
  std::uint64_t spanned_bytes(const StoredShard& shard) const {
    const auto strides = file_->strides_.find(tensor_);
    if (strides == file_->strides_.end()) return shard.frame_bytes;
    std::uint64_t elements = shard.dims.num_elements() == 0 ? 0 : 1;
    for (int d = 0; d < shard.dims.size() && elements > 0; ++d) {
      elements += static_cast<std::uint64_t>((shard.dims[d] - 1) *
                                             strides->second[static_cast<std::size_t>(d)]);
    }
    return elements * static_cast<std::uint64_t>(facts_of(file_->tensors_[tensor_].dtype).bytes);
  }

  /// Appends blocks of elements that are spread evenly over the shard, from its first byte to its
  /// last.
  void add_blocks(const StoredShard& shard, std::vector<std::uint64_t>& words) const {
    constexpr std::uint64_t kBlocks = 16;
    constexpr std::uint64_t kBlockBytes = 4096;
    const std::uint64_t all = spanned_bytes(shard);
    const std::uint64_t bytes = std::min(all, kBlockBytes);
    const std::uint64_t last = all - bytes;
    std::vector<std::byte> block(static_cast<std::size_t>(bytes));
    for (std::uint64_t i = 0; i < (last == 0 ? 1 : kBlocks); ++i) {
      file_->files_->read(shard.file, shard.file_offset + last / (kBlocks - 1) * i, block);
      words.push_back(xxh3(block));
    }
  }

  void require_preds(std::span<const Target> targets) const {
    if (file_->tensors_[tensor_].dtype != FileDType::pred || file_->has_checksums_) return;
    for (const Target& target : targets) require_pred(target);
  }

  /// Collects the elements of a box, which are `strides` apart in the file, in row-major order.
  std::vector<std::byte> gather(const Box& box, const std::vector<std::int64_t>& strides) const {
    const StoredShard& shard = file_->manifest_.tensors[tensor_].shards.front();
    const auto bytes = static_cast<std::size_t>(facts_of(file_->tensors_[tensor_].dtype).bytes);
    const auto count = static_cast<std::size_t>(box.dims.num_elements());
    std::vector<std::byte> elements(count * bytes);
    if (count == 0) return elements;
    std::int64_t first = 0;
    std::int64_t last = 0;
    for (int d = 0; d < box.dims.size(); ++d) {
      const std::int64_t stride = strides[static_cast<std::size_t>(d)];
      first += box.offsets[d] * stride;
      last += (box.dims[d] - 1) * stride;
    }
    std::vector<std::byte> stored((static_cast<std::size_t>(last) + 1) * bytes);
    file_->files_->read(shard.file, shard.file_offset + static_cast<std::uint64_t>(first) * bytes,
                        stored);
    Shape at = box.dims;
    for (int d = 0; d < at.size(); ++d) at[d] = 0;
    for (std::size_t i = 0; i < count; ++i) {
      std::int64_t place = 0;
      for (int d = 0; d < at.size(); ++d) place += at[d] * strides[static_cast<std::size_t>(d)];
      std::memcpy(&elements[i * bytes], &stored[static_cast<std::size_t>(place) * bytes], bytes);
      for (int d = at.size() - 1; d >= 0 && ++at[d] == box.dims[d]; --d) at[d] = 0;
    }
    return elements;
  }

  /// Throws unless the elements are 0 or 1, because another program's file may contain anything.
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
    const bool is_same = from == static_cast<FileDType>(dtype_);
    const BoxRuns runs(box, target.placed);
    runs.each(0, box.dims.num_elements(),
              [&](std::int64_t stored, std::int64_t placed, std::int64_t count) {
                const std::byte* source = elements.data() + stored * from_bytes;
                std::byte* to = target.memory + placed * to_bytes;
                if (is_same) std::memcpy(to, source, static_cast<std::size_t>(count * to_bytes));
                for (std::int64_t i = 0; i < count && !is_same; ++i) {
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
  if (dtype == FileDType::other) return form;
  std::string dims = shape.to_string();
  for (char& c : dims) c = c == 'x' ? ',' : c;
  return fmt::format("{}[{}]", dtype_name, dims);
}

std::int64_t FileTensor::bytes() const {
  if (dtype == FileDType::other) return stored_bytes;
  return shape.num_elements() * facts_of(dtype).bytes;
}

/// Opens all files at once, because they may be removed or replaced before they are first used. A
/// file without checksums must still begin with the bytes that were read before.
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
  // This locks the local copy of the manifest before it copies parts, so that the copy isn't
  // removed.
  folder_ = local_folder(folder, {std::string(kManifestName)});
  lock_.emplace(folder_);
  manifest_ = read_manifest(folder_);
  if (is_remote(folder)) {
    (void)local_folder(folder, manifest_.files);
    keep_one_copy(parent_url(folder), folder, std::string(kManifestName));
  }
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

void StateFile::add(const Foreign& tensor) {
  FileTensor described{.name = tensor.name, .dtype_name = tensor.dtype};
  const auto facts =
      std::ranges::find(kDTypes, std::string_view(tensor.dtype), &DTypeFacts::safetensors);
  const std::optional<Shape> shape = shape_of(tensor.sizes);
  StoredTensor stored{.name = tensor.name};
  const std::uint64_t file_bytes = headers_.back().file_bytes;
  if (facts != kDTypes.end() && shape && tensor.bytes <= file_bytes + kSharedBytesMax) {
    described.dtype = facts->dtype;
    described.dtype_name = facts->name;
    described.shape = *shape;
    stored.type = {stand_in(facts->bytes), *shape};
  } else {
    described.form = fmt::format("{}[{}]", tensor.dtype, fmt::join(tensor.sizes, ","));
    described.stored_bytes = static_cast<std::int64_t>(tensor.bytes);
  }
  const PlacedBox whole = whole_box(stored.type.shape);
  stored.shards = {{.offsets = whole.box.offsets,
                    .dims = whole.box.dims,
                    .file = static_cast<std::uint32_t>(manifest_.files.size() - 1),
                    .file_offset = tensor.begin,
                    .frame_bytes = tensor.bytes}};
  if (!tensor.strides.empty()) {
    strides_[tensors_.size()].assign(tensor.strides.begin(), tensor.strides.end());
  }
  manifest_.tensors.push_back(std::move(stored));
  tensors_.push_back(std::move(described));
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
