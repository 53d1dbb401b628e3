#include "actors/join/worker_actors.hpp"

#include <cstdint>

#include "actors/join/claimed_process.hpp"
#include "actors/process/job_thread.hpp"
#include "actors/table/actor_protocol.hpp"

namespace weft {

WorkerActors::WorkerActors(const std::string& system, std::string_view job, int worker) {
  const ActorTable actors = ActorTable::open(system);
  process_ = join_by_claim(
      system,
      {.port_count = kPortCountMax,
       .runners = actors.head().threads,
       .heap_bytes = actors.head().heap_bytes,
       .call_timeout_s = actors.head().call_timeout_s},
      [this](ActorOp op, PeerId, std::uint32_t, std::uint64_t, const Error&) {
        if (op == ActorOp::leave) must_end_.release();
      },
      job_key(job), static_cast<std::uint32_t>(worker));
  thread_ = start_job_thread("weft.beside", [this] {
    must_end_.acquire();
    process_->stop();
  });
}

WorkerActors::~WorkerActors() {
  process_->report_leaving();
  must_end_.release();
  thread_.join();
}

}  // namespace weft
