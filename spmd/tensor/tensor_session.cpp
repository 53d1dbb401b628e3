// Implements TensorSession.

#include <utility>

#include <weft/tensor/error.hpp>

#include "spmd/tensor/loop_threads.hpp"
#include "spmd/tensor/trace.hpp"

namespace weft {

TensorSession::TensorSession(Runtime& runtime)
    : trace_(std::make_unique<Trace>(runtime, false)), thread_(this_thread_number()) {
  LoopThreads::add(thread_);
}

TensorSession::~TensorSession() {
  LoopThreads::remove(thread_);
  if (Trace::find_current() == trace_.get()) Trace::set_current(nullptr);
}

void TensorSession::enter(const std::source_location& loc) {
  if (Trace::find_current() == trace_.get()) return;
  if (const int here = this_thread_number(); here != thread_) {
    fail(Errc::invalid_argument,
         "Session: it was first bound on thread {}, but this is thread {}: make a Session for each "
         "thread (at {})",
         thread_, here, file_line(loc));
  }
  const Trace* const present = Trace::find_current();
  if (present != nullptr && !present->runtime().is_session()) {
    fail(Errc::invalid_argument,
         "Session: this thread runs a training loop, whose tensors are on the chips of its job: "
         "use the loop's own modules here, or bind the Session on another thread (at {})",
         file_line(loc));
  }
  Trace::set_current(trace_.get());
}

void TensorSession::run(const RunSite& site) {
  if (trace_->has_recorded()) trace_->run(site);
}

BufferPtr TensorSession::find_buffer(const Tensor& state) {
  const auto* buffer = std::get_if<BufferPtr>(&node_of(state)->storage);
  return buffer == nullptr ? nullptr : *buffer;
}

void TensorSession::set_buffer(const Tensor& state, BufferPtr buffer) {
  TensorNode& node = *node_of(state);
  node.storage = std::move(buffer);
  node.kept = {};
  node.origin.reset();
  node.was_assigned = false;
}

}  // namespace weft
