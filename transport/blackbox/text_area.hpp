#pragma once
/// TextArea: stores the texts of a process in its job's black box.

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "transport/blackbox/box_format.hpp"

namespace weft {

/// Adds texts. Thread-safe. Takes a lock, so it is only for loads, compilations and rare events.
class TextArea {
 public:
  /// Continues after the texts of an earlier process that had the number `process`.
  TextArea(box_format::TextAreaV2& area, int process);
  TextArea(const TextArea&) = delete;
  TextArea& operator=(const TextArea&) = delete;

  /// Returns the id of the text, which is cut to 255 bytes, and added if it is new. Returns 0 if
  /// there is no room. If `is_record`, the text may use only three quarters of the area, because
  /// the number of such texts is unlimited.
  std::uint32_t intern(std::string_view text, bool is_record = false);

 private:
  box_format::TextAreaV2& area_;
  const std::uint32_t first_id_;
  std::mutex mutex_;
  std::uint32_t used_;                                  // guarded by mutex_
  std::unordered_map<std::string, std::uint32_t> ids_;  // guarded by mutex_
};

}  // namespace weft
