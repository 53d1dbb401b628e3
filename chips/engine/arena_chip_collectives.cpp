#include "chips/engine/arena_chip_collectives.hpp"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "spmd/mesh/hybrid_mesh.hpp"

namespace weft {
namespace {

/// When this many call sites have prepared calls, all of these calls are dropped. Only a program
/// whose sizes never repeat has so many, and it doesn't need the prepared calls again.
constexpr std::size_t kPreparedCountMax = 4096;

std::size_t rounded(std::size_t bytes) {
  return (bytes + kOffsetAlignment - 1) / kOffsetAlignment * kOffsetAlignment;
}

}  // namespace

ArenaChipCollectives::ArenaChipCollectives(JobMemory& memory, const Mesh& mesh, int position,
                                           int local_index, Communicator& communicator)
    : ChipCollectives(mesh, position, local_index),
      memory_(memory),
      mesh_(mesh),
      position_(position),
      arena_(chip_on_host(mesh, position)),
      communicator_(communicator) {}

void ArenaChipCollectives::run_body(std::uint64_t step, std::uint32_t program,
                                    const std::function<void(Chip&)>& body) {
  communicator_.set_step(step);
  body_ = program;
  body(chip());
  communicator_.leave_body();
}

void ArenaChipCollectives::carry_out(const ChipCall& call) {
  if (call.kind == CollectiveKind::barrier) {
    CollectiveCall barrier = call.in_arena(0, 0);
    return run(barrier, call);
  }
  const std::optional<std::uint64_t> from = place_in_arena(call.source);
  const std::optional<std::uint64_t> to = place_in_arena(call.destination);
  if (!from || !to) return carry_out_staged(call);
  CollectiveCall in_place = call.in_arena(*from, *to);
  call.set_count(in_place, call.count);
  run(in_place, call);
}

void ArenaChipCollectives::carry_out_staged(const ChipCall& call) {
  const auto element = static_cast<std::size_t>(byte_size(call.dtype));
  const bool in_place = call.is_in_place();
  const auto staged_parts =
      static_cast<std::size_t>(call.parts_in_source + (in_place ? 0 : call.parts_in_destination));
  const std::size_t room = std::min(kStagingBytes, memory_.buffers_offset() - kArenaTempOffset);
  const std::size_t usable = room - (in_place ? 0 : kOffsetAlignment);  // to align the result
  const auto piece = static_cast<std::int64_t>(usable / (element * staged_parts));
  if (piece == 0) {
    fail(Errc::no_space, "{} at {}: an element of each of {} chips doesn't fit in {} bytes",
         to_string(call.kind), call.site(), call.group_size, usable);
  }
  const bool is_broadcast = call.kind == CollectiveKind::broadcast;
  const bool is_root = is_broadcast && mesh_.index_in(position_, call.atoms) == call.from[0];

  CollectiveCall staged_call = call.in_arena(kArenaTempOffset, kArenaTempOffset);
  std::int64_t done = 0;
  do {
    const std::int64_t count = std::min(piece, call.count - done);
    const std::size_t bytes = static_cast<std::size_t>(count) * element;
    const auto piece_of_part = [&](std::int64_t part) {
      return static_cast<std::size_t>(part * call.count + done) * element;
    };
    const auto staged = [&](std::uint64_t begin, std::int64_t part) {
      return address(begin + static_cast<std::size_t>(part) * bytes);
    };
    const std::size_t operand_bytes = static_cast<std::size_t>(call.parts_in_source) * bytes;
    const std::size_t result_bytes = static_cast<std::size_t>(call.parts_in_destination) * bytes;
    staged_call.destination = staged_call.source + (in_place ? 0 : rounded(operand_bytes));
    memory_.reserve(arena_, staged_call.source,
                    staged_call.destination - staged_call.source + result_bytes);
    for (std::int64_t part = 0; part < call.parts_in_source && (!is_broadcast || is_root); ++part) {
      std::copy_n(call.source + piece_of_part(part), bytes, staged(staged_call.source, part));
    }
    call.set_count(staged_call, count);
    run(staged_call, call, call.count);
    for (std::int64_t part = 0; part < call.parts_in_destination && !is_root; ++part) {
      std::copy_n(staged(staged_call.destination, part), bytes,
                  call.destination + piece_of_part(part));
    }
    done += count;
  } while (done < call.count);
}

std::optional<std::uint64_t> ArenaChipCollectives::place_in_arena(const std::byte* data) const {
  const auto arena = reinterpret_cast<std::uintptr_t>(memory_.arena(arena_));
  const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(data) - arena;  // huge if outside
  if (offset >= memory_.arena_capacity() || offset % kOffsetAlignment != 0) return {};
  return offset;
}

void ArenaChipCollectives::run(CollectiveCall& call, const ChipCall& of, std::int64_t whole) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;  // distributes the tags of bodies evenly
  call.tag = (body_ + 1) * kOdd + static_cast<std::uint64_t>(whole);
  const CallSite site{encode(call), of.where.file_name(), of.where.line()};
  auto found = prepared_.find(site);
  if (found == prepared_.end()) {
    std::string name = of.site();
    if (whole != 0) name += fmt::format(", of {}", whole);
    if (call.kind == CollectiveKind::broadcast) name += fmt::format(", root {}", call.from[0]);
    CollectiveCall named = call;
    named.name = name;
    found = prepared_.emplace(site, communicator_.prepare(named)).first;
  }
  communicator_.run(found->second);
  // Calls are dropped only after a run() that succeeded, because the communicator still refers to a
  // call whose run() threw.
  if (prepared_.size() >= kPreparedCountMax) prepared_.clear();
}

}  // namespace weft
