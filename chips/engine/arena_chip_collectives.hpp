#pragma once
/// ArenaChipCollectives: carries out the collectives of on_each_chip() bodies in the arenas.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>

#include "chips/engine/chip_collectives.hpp"
#include "transport/collectives/communicator.hpp"

namespace weft {

/// The size of the memory in the arena for copies of operands and results that are outside the
/// arena. Larger operands and results are copied in pieces of this size, which stay in the caches.
inline constexpr std::size_t kStagingBytes = std::size_t{512} << 10;

class ArenaChipCollectives final : public ChipCollectives {
 public:
  /// `communicator` is the communicator that the executor's plans use too.
  ArenaChipCollectives(JobMemory& memory, const Mesh& mesh, int position, int local_index,
                       Communicator& communicator);

  /// Runs a body of on_each_chip() in a step. `program` is the body's number among the loop's
  /// programs. Each call contains this number, so that calls of chips that run different bodies
  /// don't match.
  void run_body(std::uint64_t step, std::uint32_t program, const std::function<void(Chip&)>& body);

  void carry_out(const ChipCall& call) override;
  std::byte* address(std::uint64_t offset) override { return memory_.arena(arena_) + offset; }

 private:
  /// A collective together with the source line that calls it.
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

  /// Carries out `call` for the call site of `of`. `whole` is 0 unless `call` is only a piece of
  /// `of`; then it is the number of elements of all pieces.
  void run(CollectiveCall& call, const ChipCall& of, std::int64_t whole = 0);
  void carry_out_staged(const ChipCall& call);
  std::optional<std::uint64_t> place_in_arena(const std::byte* data) const;

  JobMemory& memory_;
  const Mesh& mesh_;
  const int position_;
  const int arena_;  ///< the chip's number in the job's memory
  Communicator& communicator_;
  std::uint32_t body_ = 0;
  std::unordered_map<CallSite, PreparedCall, CallSiteHash> prepared_;
};

}  // namespace weft
