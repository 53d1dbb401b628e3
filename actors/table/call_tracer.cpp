#include "actors/table/call_tracer.hpp"

#include <weft/tensor/error.hpp>

#include "actors/process/log.hpp"
#include "transport/blackbox/black_box_writer.hpp"

namespace weft {
namespace {

/// The ring of the calling thread, if it runs actors.
struct RingOfThread {
  const CallTracer* tracer = nullptr;
  CallRingWriter writer{};

  static RingOfThread& current() {
    static thread_local RingOfThread ring;
    return ring;
  }
};

}  // namespace

CallTracer::CallTracer(ActorTable& table, PeerId self)
    : table_(&table),
      self_(self),
      is_on_(trace_level_of_environment() != TraceLevel::off),
      shared_(open(0)) {}

CallRingWriter CallTracer::open(std::uint32_t port) const {
  if (!is_on_) return {};
  try {
    CallRing& ring = table_->open_ring(self_.slot, port);
    const auto source = static_cast<TickSource>(table_->head().tick_source);
    return {ring, port == 0, source, self_};
  } catch (const Error& error) {
    if (error.code() != Errc::no_space) throw;
    logger("weft.worker")->warn("actors: the calls of a thread aren't recorded: {}", error.what());
    return {};
  }
}

void CallTracer::begin_thread(std::uint32_t port) {
  RingOfThread::current() = {.tracer = this, .writer = open(port)};
}

const CallRingWriter& CallTracer::writer() const {
  const RingOfThread& own = RingOfThread::current();
  return own.tracer == this ? own.writer : shared_;
}

void CallTracer::called(std::uint32_t row, std::uint32_t endpoint, std::uint64_t number,
                        std::uint32_t from) const {
  put_sent(ActorFunctionKind::call, row, endpoint, number, from);
}

std::uint64_t CallTracer::told(std::uint32_t row, std::uint32_t endpoint, std::uint32_t from) {
  const std::uint64_t number = tells_.fetch_add(1, std::memory_order_relaxed) + 1;
  put_sent(ActorFunctionKind::tell, row, endpoint, number, from);
  return number;
}

void CallTracer::put_sent(ActorFunctionKind function, std::uint32_t row, std::uint32_t endpoint,
                          std::uint64_t number, std::uint32_t from) const {
  const CallRingWriter& writer = this->writer();
  if (!writer.is_on()) return;
  writer.put(writer.now(), {.kind = CallEventKind::sent,
                            .function = function,
                            .row = row,
                            .endpoint = endpoint,
                            .number = number,
                            .value = from});
}

void CallTracer::answered(std::uint32_t row, std::uint32_t endpoint, std::uint64_t number,
                          std::uint32_t from, std::uint8_t error) const {
  const CallRingWriter& writer = this->writer();
  if (!writer.is_on()) return;
  writer.put(writer.now(), {.kind = CallEventKind::answered,
                            .function = ActorFunctionKind::call,
                            .row = row,
                            .endpoint = endpoint,
                            .number = number,
                            .value = from | std::uint64_t{error} << 32U});
}

void CallTracer::replied(const Asked& asked) const {
  const CallRingWriter& writer = this->writer();
  if (!writer.is_on()) return;
  writer.put(writer.now(), {.kind = CallEventKind::replied,
                            .function = ActorFunctionKind::call,
                            .row = asked.heading.target,
                            .endpoint = endpoint_of(asked.heading),
                            .peer = asked.by.slot,
                            .peer_incarnation = asked.by.incarnation & 0xffffU,
                            .number = asked.heading.call});
}

std::uint32_t CallTracer::caller(const std::optional<ActorNumber>& actor) {
  return actor ? row_of(*actor) + 1 : 0;
}

}  // namespace weft
