#pragma once
/// CallRecord: reads and writes the record of a chip's last call, which other chips read after an
/// error. The format is in control_format.hpp. Between hosts, a CallHeader carries the call
/// instead.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include <weft/sharding/mesh.hpp>

#include "transport/collectives/collective_call.hpp"
#include "transport/job/control_format.hpp"

namespace weft {

/// The value of CommitLine::bodies for a chip whose loop has ended.
inline constexpr std::uint64_t kLoopEnded = ~std::uint64_t{0};

struct RecordedCall {
  std::uint64_t number = 0;  ///< 0: the chip hasn't called anything yet
  CallWords words{};
  std::string name;
};

using SharedCallWords = std::atomic<std::uint64_t>[CallRecord::kWordCount];
using SharedCallName = std::atomic<std::uint64_t>[CallRecord::kNameWordCount];
/// Writes the words of a call, and its name shortened to fit, into shared memory.
void write_call(SharedCallWords& to, SharedCallName& to_name, const CallWords& words,
                std::string_view name) noexcept;
RecordedCall read_call(std::uint64_t number, const SharedCallWords& words,
                       const SharedCallName& name);

/// Writes the chip's own record, with the name shortened to fit.
void write_record(CallRecord& record, std::uint64_t number, const CallWords& words,
                  std::uint64_t signature, std::string_view name) noexcept;

/// Updates the chip's record when the chip repeats the call that is in the record.
inline void renew_record(CallRecord& record, std::uint64_t number,
                         std::uint64_t signature) noexcept {
  record.number.store(number, std::memory_order_release);
  record.signature.store(signature, std::memory_order_relaxed);
}

/// Returns the call in a record, or nothing while the chip is writing another call.
std::optional<RecordedCall> read_record(const CallRecord& record);

/// The header of a message to a chip of another host: the call that the sender is in. The data of
/// the collective follows.
struct CallHeader {
  std::uint64_t number = 0;
  std::uint64_t signature = 0;
  std::uint64_t commit = 0;  ///< the step that the sender has committed
  CallWords words{};
  std::array<char, 64> name{};  ///< shortened to fit; filled with zeros
};
static_assert(std::has_unique_object_representations_v<CallHeader>);

CallHeader make_header(std::uint64_t number, std::uint64_t signature, std::uint64_t commit,
                       const CallWords& words, std::string_view name) noexcept;
/// Returns the call in a received header, or nothing if the bytes aren't a header.
std::optional<RecordedCall> read_header(const CallHeader& header);

/// Returns a text such as "all_reduce #812 'fc1.weight.grad' over {data}".
std::string name_of(const RecordedCall& call, const Mesh& mesh);
/// Returns a text such as "all_reduce #812 'fc1.weight.grad' over {data}: add f32 1 x 100, offset
/// 4096 to 8192".
std::string to_string(const RecordedCall& call, const Mesh& mesh);

}  // namespace weft
