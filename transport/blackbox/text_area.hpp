#pragma once
/// TextArea: the texts of a process in its job's black box.

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "transport/blackbox/box_format.hpp"

namespace weft {

/// Adds texts. Thread-safe. For loads, compilations and rare events: it takes a lock.
class TextArea {
 public:
  /// Goes on where an earlier process of this number has ended.
  TextArea(box_format::TextAreaV1& area, int process);
  TextArea(const TextArea&) = delete;
  TextArea& operator=(const TextArea&) = delete;

  /// The id of the text, cut to 255 bytes and added if it is new. 0 where there is no room; text
  /// that `is_record`, of which there may be any amount, gets three quarters of the area.
  std::uint32_t intern(std::string_view text, bool is_record = false);

 private:
  box_format::TextAreaV1& area_;
  const std::uint32_t first_id_;
  std::mutex mutex_;
  std::uint32_t used_;                                  // guarded by mutex_
  std::unordered_map<std::string, std::uint32_t> ids_;  // guarded by mutex_
};

}  // namespace weft
