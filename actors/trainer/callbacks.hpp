#pragma once
/// Calls of a program's callbacks.

#include <unistd.h>

#include <memory>
#include <vector>

#include <weft/job/callback.hpp>

#include "actors/process/failure.hpp"
#include "transport/blackbox/recorder.hpp"

namespace weft {

/// Calls each of them, in order. `trainer`: the row of the board that shows which of them it is in:
/// one that doesn't return blocks the trainer's own thread.
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
