#pragma once
/// Plants bytes as a named segment, as another process would have left it.

#include <unistd.h>

#include <algorithm>
#include <span>
#include <string>

#include <fmt/format.h>

#include "transport/memory/segment.hpp"

namespace weft::testing {

/// A job id for which no other process plants segments.
inline std::string planted_job() { return fmt::format("{:032x}", getpid()); }

/// The name of the segment is removed with this object.
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
