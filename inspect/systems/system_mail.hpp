#pragma once
/// SystemMail: the ports, calls and blocks of a process of an actor system, read from outside.

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "inspect/process/segment_file.hpp"
#include "transport/lanes/lane_format.hpp"

namespace weft {

class SystemMail {
 public:
  /// Opens the memory of a process. Returns nothing if the process hasn't made its memory, or the
  /// memory was removed. Throws version or corrupt.
  static std::optional<SystemMail> open(std::string_view system, PeerId peer);

  std::uint32_t port_count() const { return port_count_; }
  std::uint64_t heap_bytes() const { return heap_bytes_; }
  /// Returns whether the process still waits for the answer to its call with the number `call`.
  bool awaits(std::uint64_t call) const;

  struct Waiting {
    std::uint64_t call = 0;
    std::uint32_t target = 0;
    std::uint32_t kind = 0;
  };
  /// Returns the messages from slot `sender` to a port that nobody has taken, in order; at most
  /// kLaneEntryCount.
  std::vector<Waiting> waiting(std::uint32_t port, std::uint32_t sender) const;
  /// Returns the slots that have sent to a port.
  std::vector<std::uint32_t> senders(std::uint32_t port) const;

  /// Calls `use` with the index of each block and its row.
  void for_each_block(const std::function<void(std::uint32_t, const LedgerRow&)>& use) const;

 private:
  SystemMail(SegmentFile file, std::uint32_t port_count, std::uint64_t heap_bytes)
      : file_(std::move(file)), port_count_(port_count), heap_bytes_(heap_bytes) {}

  SegmentFile file_;
  std::uint32_t port_count_;
  std::uint64_t heap_bytes_;
};

}  // namespace weft
