#pragma once
/// The words of a Failure's message that say what became of a worker.

#include <string>

#include "actors/protocol/protocol.hpp"
#include "actors/protocol/sighting.hpp"

namespace weft {

/// " at step 204, in all_reduce #812 'fc1.weight.grad'".
std::string describe(const Whereabouts& where);

/// "was killed by signal 9 (SIGKILL)", "exited with code 3".
std::string describe(const ProcessEnded& ended);

/// What to do where a process was killed for want of memory; else "".
std::string out_of_memory_advice(const ProcessEnded& ended);

/// Without the spaces before it.
std::string trimmed(const std::string& text);

}  // namespace weft
