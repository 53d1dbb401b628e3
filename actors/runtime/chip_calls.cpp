// The part of WorkerRuntime that runs a loop's bodies of on_each_chip() on its chips.

#include <functional>
#include <span>

#include "actors/runtime/worker_runtime.hpp"

namespace weft {

void WorkerRuntime::call_on_chips(const std::function<void(Chip&)>& body,
                                  const std::source_location& where) {
  if (!options_.has_mesh) {
    fail(Errc::unavailable,
         "on_each_chip at {}:{}: the job has no mesh (backend.backend = Backend::none), so its "
         "chips can't reach each other: set backend.backend = Backend::spmd",
         where.file_name(), where.line());
  }
  if (!body) {
    fail(Errc::invalid_argument, "on_each_chip at {}:{}: body is empty", where.file_name(),
         where.line());
  }
  require_loop_thread("on_each_chip", where);
  recorder_.at(where);
  const std::uint32_t number = find_or_admit(where);
  call_devices(number, body, {.function = "on_each_chip", .loc = where});
  const StateScope running(recorder_, ActorState::running);
  std::exception_ptr failure;  // thrown after all devices have left `body`
  for (const auto& device : devices_) {
    try {
      device->progress().wait(runs_);
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

/// Makes all devices call `body`, which counts as one run. `body` must live until the run has
/// ended.
void WorkerRuntime::call_devices(std::uint32_t number, const std::function<void(Chip&)>& body,
                                 const RunSite& site) {
  await_room();
  const auto call = std::make_shared<DeviceCall>(number, runs_ + 1, step_, body);
  begin_run(number, site);
  for (const auto& device : devices_) device->call(call);
}

std::uint64_t WorkerRuntime::agree(const std::string& text, const Fingerprint& key,
                                   const RunSite& site) {
  static const std::function<void(Chip&)> kNothing = [](Chip&) {};
  if (!put_.tensors.empty()) tell_data({});
  const std::uint32_t number = programs_;
  admit(number, text, key, site);
  ++programs_;
  call_devices(number, kNothing, site);
  return runs_;
}

void WorkerRuntime::require_alike(const std::string& text, const RunSite& site) {
  if (!options_.has_mesh) return;
  agree(text, {.low = xxh3(std::as_bytes(std::span(text))), .high = 0}, site);
}

/// Returns the program number of the on_each_chip() calls at this source line. The first of these
/// calls waits until all workers agree on the line.
std::uint32_t WorkerRuntime::find_or_admit(const std::source_location& where) {
  const std::string text = fmt::format("on_each_chip at {}:{}", where.file_name(), where.line());
  const auto found = bodies_.find(text);
  if (found != bodies_.end()) return found->second;
  admit(programs_, text, {.low = std::hash<std::string>()(text), .high = 0},
        {.function = "on_each_chip", .loc = where});
  return bodies_.emplace(text, programs_++).first->second;
}

ArenaPlace WorkerRuntime::allocate(std::int64_t size, std::size_t element_bytes,
                                   const std::source_location& where) {
  require_loop_thread("allocate", where);
  const auto most = static_cast<std::int64_t>(memory_.arena_capacity() / element_bytes);
  if (size < 0 || size > most) {
    fail(Errc::invalid_argument,
         "allocate: size = {}: expected 0 to {}, the size of a chip's arena", size, most);
  }
  const std::int64_t bytes = size * static_cast<std::int64_t>(element_bytes);
  const std::uint64_t offset = pool_->allocate_array(bytes);
  const std::shared_ptr<void> block(
      nullptr, [pool = pool_, offset, bytes](void*) { pool->free_array(offset, bytes); });
  return {offset, block, alive_};
}

}  // namespace weft
