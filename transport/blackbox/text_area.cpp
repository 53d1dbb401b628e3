#include "transport/blackbox/text_area.hpp"

#include <cstring>

#include "transport/memory/shared_field.hpp"
#include "transport/memory/text_words.hpp"

namespace weft {
namespace {

using box_format::kTextBytes;
using box_format::TextAreaV2;

constexpr std::uint32_t kBegin = offsetof(TextAreaV2, bytes);
constexpr std::size_t kLengthMax = 255;
constexpr std::uint32_t kRecordsEnd = kTextBytes / 4 * 3;

}  // namespace

TextArea::TextArea(TextAreaV2& area, int process)
    : area_(area), first_id_(static_cast<std::uint32_t>(process) * kTextBytes), used_(kBegin) {
  const std::uint64_t end = std::min<std::uint64_t>(load_field(area.used), kTextBytes);
  const char* const bytes = reinterpret_cast<const char*>(&area);
  std::uint16_t length = 0;
  while (used_ + sizeof length <= end) {
    std::memcpy(&length, bytes + used_, sizeof length);
    if (length > end - used_ - sizeof length) break;
    ids_.try_emplace(std::string(bytes + used_ + sizeof length, length), first_id_ + used_);
    used_ += static_cast<std::uint32_t>(sizeof length + length);
  }
  store_field(area_.used, std::uint64_t{used_});
}

std::uint32_t TextArea::intern(std::string_view text, bool is_record) {
  text = cut_text(text, kLengthMax);
  if (text.empty()) return 0;
  const std::lock_guard lock(mutex_);
  std::string key(text);
  if (const auto known = ids_.find(key); known != ids_.end()) return known->second;
  const auto length = static_cast<std::uint16_t>(text.size());
  const std::size_t end = used_ + sizeof length + length;
  if (end > (is_record ? kRecordsEnd : kTextBytes)) return 0;
  char* const place = reinterpret_cast<char*>(&area_) + used_;
  std::memcpy(place, &length, sizeof length);
  std::memcpy(place + sizeof length, text.data(), length);
  const std::uint32_t id = first_id_ + used_;
  used_ = static_cast<std::uint32_t>(end);
  store_field(area_.used, std::uint64_t{used_});
  ids_.emplace(std::move(key), id);
  return id;
}

}  // namespace weft
