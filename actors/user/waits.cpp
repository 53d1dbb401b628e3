#include "actors/user/waits.hpp"

#include <algorithm>
#include <atomic>
#include <optional>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "actors/table/actor_protocol.hpp"
#include "actors/user/actor_process.hpp"
#include "actors/user/registry.hpp"
#include "transport/lanes/peer_memory.hpp"

namespace weft {
namespace {

/// Follows the calls for which actors wait.
class CircleSearch {
 public:
  CircleSearch(detail::ActorProcess& process, ActorNumber waiter)
      : process_(process), table_(process.actors()), waiter_(waiter) {}

  std::string run(AwaitedCall awaited) {
    std::string text =
        table_.function_name(waiter_, ActorFunction::of(table_.row(waiter_).function.load()));
    ActorNumber caller = waiter_;
    for (int length = 0; length < kCircleLengthMax; ++length) {
      if (awaited.number == 0 || awaited.row >= table_.row_count()) return "";
      const ActorNumber asked = table_.number_in(awaited.row);
      text += " > " + table_.function_name(
                          asked, {.kind = ActorFunctionKind::call, .endpoint = awaited.endpoint});
      // The wait of the asked actor is read before its answer is looked for. So an answer that it
      // sent before that wait is found.
      const std::uint64_t next = table_.row(asked).awaited.load(std::memory_order_seq_cst);
      if (next == 0 || !is_unanswered(caller, asked, awaited)) return "";
      if (asked == waiter_) return text;
      caller = asked;
      awaited = AwaitedCall::of(next);
    }
    return "";
  }

 private:
  const detail::EndpointEntry* entry(ActorNumber row, std::uint32_t index) const {
    try {
      return &find_actor_class(table_.type(row)).parts().endpoints.at(index);
    } catch (const std::exception&) {
      return nullptr;
    }
  }

  /// Returns whether the caller still waits for the call and no answer to it has been sent. An
  /// actor that keeps a Reply counts as answering, because it may answer while it waits itself.
  bool is_unanswered(ActorNumber caller, ActorNumber asked, const AwaitedCall& awaited) {
    const detail::EndpointEntry* called = entry(asked, awaited.endpoint);
    if (called == nullptr || called->replies_later) return false;
    const ActorPosition from = table_.position(caller);
    const ActorPosition to = table_.position(asked);
    if (!process_.peers().is_alive(from.process) || !process_.peers().is_alive(to.process)) {
      return false;
    }
    PeerMemory& mail = process_.node()->peers().current(from.process.slot);
    const auto index = static_cast<std::uint32_t>(awaited.number % kCallCountMax);
    const std::uint64_t number = mail.call(index).load(std::memory_order_seq_cst);
    if ((number & AwaitedCall::kNumberMask) != awaited.number) return false;
    const Lane& answers = mail.lane(kReplyPort, to.process.slot);
    const bool is_answered = std::ranges::any_of(answers.entries, [&](const Entry& each) {
      return each.number.load(std::memory_order_seq_cst) != 0 &&
             std::atomic_ref<const std::uint64_t>(each.call).load(std::memory_order_relaxed) ==
                 number;
    });
    return !is_answered && mail.call(index).load(std::memory_order_seq_cst) == number;
  }

  detail::ActorProcess& process_;
  ActorTable& table_;
  ActorNumber waiter_;
};

}  // namespace

std::string circle_of_waits(detail::ActorProcess& process, ActorNumber waiter,
                            const AwaitedCall& awaited) {
  try {
    return CircleSearch(process, waiter).run(awaited);
  } catch (const Error&) {
    return "";  // a process has died meanwhile, so its calls end
  }
}

namespace detail {

std::uint32_t ActorProcess::pipe_user() const {
  const std::uint32_t caller = CallTracer::caller(ThreadRole::current().actor_in(*this));
  return PipeUser{.is_known = true,
                  .slot = node_->self().slot,
                  .row = caller == 0 ? PipeUser::kNoActor : caller - 1}
      .word();
}

void ActorProcess::show_wait(std::uint64_t word) const {
  const ActorTable& table = members_->actors;
  const std::uint32_t caller = CallTracer::caller(ThreadRole::current().actor_in(*this));
  std::atomic<std::uint64_t>& wait =
      caller == 0 ? table.pipe_wait(node_->self().slot) : table.row(caller - 1).awaited;
  wait.store(word, std::memory_order_relaxed);
}

std::uint32_t ActorProcess::job_source(const std::string& job, const std::string& name) const {
  try {
    return members_->actors.job_source(node_->self().slot, job, name);
  } catch (const Error&) {
    return AwaitedJob::kUnnamed;  // there is no memory for the name
  }
}

}  // namespace detail
}  // namespace weft
