#include "transport/collectives/line_call.hpp"

#include <cstring>

#include "transport/job/control_format.hpp"
#include "transport/reduce/reduce.hpp"

namespace weft {
namespace {

static_assert(sizeof(Bytes16) == kLineMailboxBytes);

/// Loads a source into a vector. If `bytes` isn't 0, the compiler knows the size, and the copy is
/// one instruction instead of a function call. The vector is made from a word in a register. If it
/// were made from bytes in memory, it would have to wait for earlier stores, such as a store to a
/// line that a peer has.
template <std::size_t bytes>
Bytes16 load_line(const std::byte* from, std::size_t size) {
  if constexpr (bytes == sizeof(Bytes16) || bytes == 0) {
    Bytes16 values{};
    std::memcpy(&values, from, bytes == 0 ? size : bytes);
    return values;
  } else {
    std::uint64_t word = 0;
    std::memcpy(&word, from, bytes);
    return Bytes16{word, 0};
  }
}
template <std::size_t bytes>
void store_line(std::byte* to, Bytes16 values, std::size_t size) {
  std::memcpy(to, &values, bytes == 0 ? size : bytes);
}
Bytes16 load_mailbox(const std::byte* from) { return load_line<sizeof(Bytes16)>(from, 0); }

}  // namespace

template <std::size_t bytes>
struct LineCall::Sized {
  static Bytes16 mail(const LineCall& call) { return load_line<bytes>(call.source_, call.bytes_); }
  static void reduce(const LineCall& call, std::span<const std::byte* const> mailboxes) {
    store_line<bytes>(call.destination_, call.reduce_(mailboxes.data(), mailboxes.size()),
                      call.bytes_);
  }
  static void gather(const LineCall& call, std::span<const std::byte* const> mailboxes) {
    std::byte* to = call.destination_;
    for (const std::byte* mailbox : mailboxes) {
      store_line<bytes>(to, load_mailbox(mailbox), call.bytes_);
      to += call.bytes_;
    }
  }
};

bool is_in_lines(Algorithm algorithm, const CollectiveCall& call, int group_size) {
  return algorithm == Algorithm::signal || (algorithm == Algorithm::mailbox &&
                                            bytes_of(call, group_size).source <= kLineMailboxBytes);
}

LineCall::LineCall(Algorithm algorithm, const CollectiveCall& call, int group_size,
                   std::byte* arena)
    : source_(arena + call.source),
      destination_(arena + call.destination),
      bytes_(algorithm == Algorithm::signal ? 0 : bytes_of(call, group_size).source) {
  switch (bytes_) {
    case 0: break;
    case 1: choose<1>(call); break;
    case 2: choose<2>(call); break;
    case 4: choose<4>(call); break;
    case 8: choose<8>(call); break;
    case 16: choose<16>(call); break;
    default: choose<0>(call);
  }
}

template <std::size_t bytes>
void LineCall::choose(const CollectiveCall& call) {
  mail_ = &Sized<bytes>::mail;
  if (call.kind == CollectiveKind::all_reduce) {
    reduce_ = reduce_loop_16(call.reduce, call.dtype);
    finish_ = &Sized<bytes>::reduce;
  } else if (call.kind == CollectiveKind::all_gather && call.outer == 1) {
    finish_ = &Sized<bytes>::gather;
  }
}

}  // namespace weft
