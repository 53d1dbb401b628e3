#pragma once
/// What a chip called last, for the others to read when something is wrong. See control_format.hpp.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <weft/mesh.hpp>

#include "transport/collectives/collective_call.hpp"
#include "transport/job/control_format.hpp"

namespace weft {

/// CommitLine::bodies of a chip whose loop has ended.
inline constexpr std::uint64_t kLoopEnded = ~std::uint64_t{0};

struct RecordedCall {
  std::uint64_t number = 0;  ///< 0: the chip hasn't called anything yet
  CallWords words{};
  std::string name;
};

/// What is shared of a call: its words, and its name, cut to fit.
using SharedCallWords = std::atomic<std::uint64_t>[CallRecord::kWordCount];
using SharedCallName = std::atomic<std::uint64_t>[CallRecord::kNameWordCount];
void write_call(SharedCallWords& to, SharedCallName& to_name, const CallWords& words,
                std::string_view name) noexcept;
RecordedCall read_call(std::uint64_t number, const SharedCallWords& words,
                       const SharedCallName& name);

/// By the chip itself; the name is cut to fit.
void write_record(CallRecord& record, std::uint64_t number, const CallWords& words,
                  std::uint64_t signature, std::string_view name) noexcept;

/// For the call that the record shows already.
inline void renew_record(CallRecord& record, std::uint64_t number,
                         std::uint64_t signature) noexcept {
  record.number.store(number, std::memory_order_release);
  record.signature.store(signature, std::memory_order_relaxed);
}

/// Absent where the chip is just writing another.
std::optional<RecordedCall> read_record(const CallRecord& record);

/// "all_reduce #812 'fc1.weight.grad' over {data}".
std::string name_of(const RecordedCall& call, const Mesh& mesh);
/// "all_reduce #812 'fc1.weight.grad' over {data}: add f32 1 x 100, offset 4096 to 8192".
std::string to_string(const RecordedCall& call, const Mesh& mesh);

}  // namespace weft
