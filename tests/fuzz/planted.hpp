#pragma once
/// Writes bytes to a named segment, as another process would have left it.

#include <unistd.h>

#include <algorithm>
#include <span>
#include <string>

#include <fmt/format.h>

#include "transport/memory/segment.hpp"

namespace weft::testing {

/// Returns a job id that only this process uses for its segments.
inline std::string planted_job() { return fmt::format("{:032x}", getpid()); }

/// Creates a named segment with these bytes. The destructor removes its name.
class Planted {
 public:
  Planted(const std::string& name, std::span<const std::byte> bytes, std::size_t capacity)
      : segment_(Segment::create(name, capacity)) {
    segment_.reserve(0, std::max<std::size_t>(bytes.size(), 1));
    std::ranges::copy(bytes, segment_.data());
  }
  Planted(const std::string& name, std::span<const std::byte> bytes)
      : Planted(name, bytes, bytes.size()) {}
  Planted(const Planted&) = delete;
  Planted& operator=(const Planted&) = delete;
  ~Planted() { Segment::remove(segment_.name()); }

 private:
  Segment segment_;
};

}  // namespace weft::testing
