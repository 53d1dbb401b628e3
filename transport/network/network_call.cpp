#include "transport/network/network_call.hpp"

#include <utility>

#include "transport/collectives/algorithm.hpp"

namespace weft {

void NetworkCall::plan(const CollectiveCall& call) {
  reduce = call.reduce;
  dtype = call.dtype;
  const Algorithm algorithm = choose_network_algorithm(call, group_size);
  overwrites_sent = algorithm == Algorithm::pull && call.source == call.destination;
  std::vector<TransferSchedule> schedules;
  for (int member = 0; member < group_size; ++member) {
    schedules.push_back(make_schedule(algorithm, call, group_size, member));
  }
  const std::size_t syncs = schedules[0].sync_count();
  const std::size_t last = has_exit_sync(algorithm) ? syncs - 1 : syncs;
  for (std::size_t stage = 1; stage <= last; ++stage) plan_stage(schedules, stage);
}

void NetworkCall::place_in_scratch(Parcel& parcel) {
  parcel.is_in_scratch = true;
  parcel.scratch = scratch_bytes;
  scratch_bytes += (parcel.bytes + kOffsetAlignment - 1) / kOffsetAlignment * kOffsetAlignment;
}

/// Adds this chip's part of a stage. Each member's schedule has a stage with this number.
void NetworkCall::plan_stage(const std::vector<TransferSchedule>& schedules, std::size_t stage) {
  NetworkStage planned;
  const auto bytes_of_part = [&](const Transfer& transfer) {
    return static_cast<std::size_t>(transfer.count * byte_size(dtype));
  };
  const auto own = static_cast<std::size_t>(index);
  for (const Transfer& transfer : schedules[own].stages[stage]) {
    std::size_t at = planned.reductions.empty() ? 0 : planned.reductions.back().at;
    if (!planned.reductions.empty()) {
      at += static_cast<std::size_t>(planned.reductions.back().count * byte_size(dtype));
    }
    for_each_part(transfer, [&](std::size_t from, std::size_t to) {
      from += transfer.from.offset;
      to += transfer.to.offset;
      if (transfer.from.member == kAllMembers) {
        planned.reductions.push_back({from, to, at, transfer.count});
        at += bytes_of_part(transfer);
      } else if (transfer.from.member == index && from != to) {
        planned.copies.push_back({from, to, bytes_of_part(transfer)});
      }
    });
  }
  for (std::size_t peer = 0; peer < wires.size(); ++peer) {
    const int member = member_of(peer);
    Parcel sent;
    for (const Transfer& transfer : schedules[static_cast<std::size_t>(member)].stages[stage]) {
      if (transfer.from.member != kAllMembers && transfer.from.member != index) continue;
      for_each_part(transfer, [&](std::size_t from, std::size_t) {
        sent.add(transfer.from.offset + from, bytes_of_part(transfer));
      });
    }
    Parcel received;
    for (const Transfer& transfer : schedules[own].stages[stage]) {
      if (transfer.from.member != kAllMembers && transfer.from.member != member) continue;
      for_each_part(transfer, [&](std::size_t, std::size_t to) {
        received.add(transfer.to.offset + to, bytes_of_part(transfer));
      });
    }
    if (sent.is_packed()) place_in_scratch(sent);
    if (received.is_packed() || !planned.reductions.empty()) place_in_scratch(received);
    planned.sent.push_back(std::move(sent));
    planned.received.push_back(std::move(received));
  }
  stages.push_back(std::move(planned));
}

}  // namespace weft
