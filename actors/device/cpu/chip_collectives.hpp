#pragma once
/// ChipCollectives: implements the collectives of Chip for on_each_chip() bodies.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <source_location>
#include <unordered_map>

#include <weft/chip.hpp>

#include "transport/collectives/communicator.hpp"

namespace weft {

/// Arena memory into which operands and results from elsewhere are copied. More bytes are copied in
/// pieces of this size, which stay in the caches until they are read.
inline constexpr std::size_t kStagingBytes = std::size_t{512} << 10;

/// The collectives of one chip, for use on its thread. Throws as Chip's functions do.
class ChipCollectives {
 public:
  /// The communicator is shared with the executor's plans.
  ChipCollectives(JobMemory& memory, const Mesh& mesh, int position, int local_index,
                  Communicator& communicator);
  ChipCollectives(const ChipCollectives&) = delete;
  ChipCollectives& operator=(const ChipCollectives&) = delete;

  /// Begins a body, by its number among the loop's programs, so that chips that run different
  /// bodies don't match each other's calls.
  Chip& chip_for(std::uint32_t body) {
    body_ = body;
    return chip_;
  }

  void carry_out(CollectiveCall call, ConstElementSpan source, ElementSpan destination,
                 const std::source_location& where);
  /// `whole`: if the call is for a piece only, the number of elements of the whole; else 0.
  void call(CollectiveCall& call, const std::source_location& where, std::int64_t whole = 0);
  std::byte* address(std::uint64_t offset) const { return memory_.arena(arena_) + offset; }

 private:
  /// A collective, identified by the source line that calls it.
  struct CallSite {
    CallWords words;
    const char* file;
    std::uint32_t line;
    bool operator==(const CallSite&) const = default;
  };
  struct CallSiteHash {
    std::size_t operator()(const CallSite& site) const noexcept {
      return digest_of(site.words) ^ site.line;
    }
  };
  struct Parts;

  void carry_out_staged(CollectiveCall& call, const Parts& parts, const std::byte* source,
                        std::byte* destination, const std::source_location& where);
  std::optional<std::uint64_t> place_in_arena(const std::byte* data) const;

  JobMemory& memory_;
  const Mesh& mesh_;
  const int position_;
  const int arena_;  ///< the chip's number in the job's memory
  Communicator& communicator_;
  std::uint32_t body_ = 0;
  std::unordered_map<CallSite, PreparedCall, CallSiteHash> prepared_;
  Chip chip_;
};

}  // namespace weft
