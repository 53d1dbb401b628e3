#pragma once
/// Calls the callbacks of a program.

#include <unistd.h>

#include <memory>
#include <vector>

#include <weft/job/callback.hpp>

#include "actors/process/failure.hpp"
#include "transport/blackbox/recorder.hpp"

namespace weft {

/// Calls `call` with each callback, in order. The board's row `trainer` shows which callback is
/// running, because a callback that doesn't return blocks the trainer's thread.
template <typename Call>
void call_each(const std::vector<std::shared_ptr<Callback>>& callbacks, const BoardWriter& trainer,
               const char* function, const Call& call) {
  for (const auto& callback : callbacks) {
    Callback& object = *callback;
    const InsideScope inside(trainer, name_of(typeid(object)) + "::" + function, ::gettid());
    call(object);
  }
}

}  // namespace weft
