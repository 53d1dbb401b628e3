#include "data/datasets/packed_rows.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include <weft/tensor/error.hpp>

#include "data/items/fields.hpp"
#include "spmd/program/element.hpp"

namespace weft {
namespace {

std::size_t find(const std::string& name, const std::vector<Field>& fields, const char* option,
                 const std::string& field) {
  const auto found = std::ranges::find(fields, field, &Field::name);
  if (found != fields.end()) return static_cast<std::size_t>(found - fields.begin());
  fail(Errc::invalid_argument, "{}: {} = '{}': there is no such field; there are: {}", name, option,
       field, fields_text(fields));
}

void check_sizes(const std::string& name, const PackOptions& options) {
  constexpr std::int64_t kLengthMax = std::int64_t{1} << 30;
  if (options.length < 1 || options.length > kLengthMax) {
    fail(Errc::invalid_argument,
         "{}: length = {}: expected 1 to 2^30, the number of tokens in a row", name,
         options.length);
  }
  constexpr std::int64_t kWindowMax = 65'536;
  if (options.window < 1 || options.window > kWindowMax) {
    fail(Errc::invalid_argument, "{}: window = {}: expected 1 to {} rows", name, options.window,
         kWindowMax);
  }
}

}  // namespace

std::optional<PackedRow> RowPacker::add(const PackedSequence& sequence) {
  const auto fitting =
      std::ranges::find_if(open_, [&](const Open& row) { return row.room >= sequence.length; });
  if (fitting != open_.end()) {
    fitting->sequences.push_back(sequence);
    fitting->room -= sequence.length;
    if (fitting->room > 0) return {};
    PackedRow full = std::move(fitting->sequences);
    open_.erase(fitting);
    return full;
  }
  if (sequence.length == length_) return PackedRow{sequence};
  std::optional<PackedRow> oldest;
  if (std::ssize(open_) == window_) oldest = close();
  open_.push_back({{sequence}, length_ - sequence.length});
  return oldest;
}

std::optional<PackedRow> RowPacker::close() {
  if (open_.empty()) return {};
  PackedRow oldest = std::move(open_.front().sequences);
  open_.pop_front();
  return oldest;
}

PackedFields::PackedFields(const std::string& name, const std::vector<Field>& source,
                           const PackOptions& options)
    : name_(name), length_(options.length), cut_long_(options.cut_long) {
  check_sizes(name_, options);
  length_field_ = find(name_, source, "length_field", options.length_field);
  const TensorType& length_type = source[length_field_].type;
  has_mask_ = length_type.dtype == DType::pred && length_type.shape.size() == 1;
  if (!has_mask_ && length_type != TensorType{DType::i32, {}}) {
    fail(Errc::invalid_argument,
         "{}: length_field = '{}' is {}: expected pred[T] (true for tokens) or i32[] (token count)",
         name_, options.length_field, length_type.to_string());
  }
  if (has_mask_) source_length_ = length_type.shape[0];
  if (options.fields.empty()) {
    for (std::size_t number = 0; number < source.size(); ++number) {
      if (number != length_field_) add(source, number, options);
    }
  }
  for (const std::string& field : options.fields) {
    add(source, find(name_, source, "fields", field), options);
  }
  for (const auto& [field, value] : options.fill) (void)find(name_, fields_, "fill", field);
  if (fields_.empty()) fail(Errc::invalid_argument, "{}: there is no field to pack", name_);
  for (const char* const made : {kSegmentIdsField, kPositionsField}) {
    fields_.push_back({made, {DType::i32, {length_}}});
  }
  check_fields(name_, fields_);
}

void PackedFields::add(const std::vector<Field>& source, std::size_t number,
                       const PackOptions& options) {
  const auto& [field, type] = source[number];
  if (type.shape.size() > 0 && source_length_ == 0) source_length_ = type.shape[0];
  if (type.shape.size() == 0 || type.shape[0] != source_length_) {
    fail(Errc::invalid_argument,
         "{}: field '{}' is {}: expected [{}, ...], one element for each token; list the fields to "
         "pack in PackOptions::fields, or convert this field by map()",
         name_, field, type.to_string(),
         source_length_ == 0 ? "T" : std::to_string(source_length_));
  }
  const auto filled = options.fill.find(field);
  const double fill = filled == options.fill.end() ? 0 : filled->second;
  if (!is_representable(type.dtype, fill)) {
    fail(Errc::invalid_argument, "{}: fill of '{}' = {}: expected a number that {} can represent",
         name_, field, fill, to_string(type.dtype));
  }
  std::vector<std::byte> element(static_cast<std::size_t>(byte_size(type.dtype)));
  store_element(type.dtype, fill, element.data());
  std::vector<std::int64_t> dims(type.shape.begin(), type.shape.end());
  dims[0] = length_;
  fields_.push_back({field, {type.dtype, Shape(std::span<const std::int64_t>(dims))}});
  const auto row_bytes = static_cast<std::size_t>(fields_.back().type.bytes());
  packed_.push_back({number, row_bytes / static_cast<std::size_t>(length_), std::move(element)});
}

TokenRun PackedFields::run_of(ItemMemory item) const {
  const std::span<const std::byte> memory = item[length_field_];
  TokenRun run;
  if (has_mask_) {
    const auto is_token = [](std::byte element) { return element != std::byte{0}; };
    const auto begin = std::ranges::find_if(memory, is_token);
    const auto end = std::find_if_not(begin, memory.end(), is_token);
    const auto second = std::find_if(end, memory.end(), is_token);
    if (second != memory.end()) {
      fail(Errc::corrupt,
           "its mask is true until position {}, and again at position {}: expected one run",
           end - memory.begin(), second - memory.begin());
    }
    run = {begin - memory.begin(), end - begin};
  } else {
    run.length = static_cast<std::int64_t>(load_element(DType::i32, memory.data()));
  }
  if (run.length < 0 || run.length > source_length_) {
    fail(Errc::corrupt, "its length is {}: expected 0 to {}", run.length, source_length_);
  }
  run.length = packed_length(run.length);
  return run;
}

std::int64_t PackedFields::packed_length(std::int64_t length) const {
  if (length < 0 || (length > length_ && !cut_long_)) {
    fail(Errc::invalid_argument,
         "it has {} tokens: expected 0 to length = {}; raise length, or set cut_long", length,
         length_);
  }
  return std::min(length, length_);
}

std::vector<std::span<std::byte>> PackedFields::run_memory(ItemMemory item,
                                                           const TokenRun& run) const {
  std::vector<std::span<std::byte>> memory;
  for (const Packed& packed : packed_) {
    memory.push_back(
        item[packed.source].subspan(static_cast<std::size_t>(run.begin) * packed.token_bytes,
                                    static_cast<std::size_t>(run.length) * packed.token_bytes));
  }
  return memory;
}

ItemBuffer PackedFields::copy_of_run(ItemMemory item, const TokenRun& run) const {
  std::vector<Field> fields;
  for (std::size_t i = 0; i < packed_.size(); ++i) {
    const auto bytes = static_cast<std::int64_t>(packed_[i].token_bytes) * run.length;
    fields.push_back({fields_[i].name, {DType::u8, {bytes}}});
  }
  ItemBuffer copy(std::move(fields));
  const std::vector<std::span<std::byte>> from = run_memory(item, run);
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::ranges::copy(from[i], copy.memory()[i].begin());
  }
  return copy;
}

std::span<std::int32_t> PackedRowWriter::numbers(std::size_t behind_packed) const {
  const std::span<std::byte> memory = out_[fields_.packed_.size() + behind_packed];
  return {reinterpret_cast<std::int32_t*>(memory.data()), memory.size() / sizeof(std::int32_t)};
}

void PackedRowWriter::append(ItemMemory run, std::int64_t length) {
  WEFT_CHECK(used_ + length <= fields_.length_, used_, length, fields_.length_);
  for (std::size_t i = 0; i < run.size(); ++i) {
    const std::size_t begin = static_cast<std::size_t>(used_) * fields_.packed_[i].token_bytes;
    std::ranges::copy(run[i], out_[i].begin() + static_cast<std::ptrdiff_t>(begin));
  }
  const auto place = [&](std::size_t field) {
    return numbers(field).subspan(static_cast<std::size_t>(used_),
                                  static_cast<std::size_t>(length));
  };
  std::ranges::fill(place(0), ++segment_);
  const std::span<std::int32_t> positions = place(1);
  std::iota(positions.begin(), positions.end(), 0);
  used_ += length;
}

void PackedRowWriter::finish() {
  const auto used = static_cast<std::size_t>(used_);
  for (std::size_t i = 0; i < fields_.packed_.size(); ++i) {
    const auto& packed = fields_.packed_[i];
    std::span<std::byte> rest = out_[i].subspan(used * packed.token_bytes);
    for (; !rest.empty(); rest = rest.subspan(packed.fill.size())) {
      std::ranges::copy(packed.fill, rest.begin());
    }
  }
  for (const std::size_t field : {0, 1}) std::ranges::fill(numbers(field).subspan(used), 0);
}

}  // namespace weft
