#pragma once
/// Makes the parts of a Failure's message that say what happened to a worker.

#include <string>

#include "actors/protocol/host_messages.hpp"
#include "actors/protocol/sighting.hpp"

namespace weft {

/// Returns a text such as " at step 204, in all_reduce #812 'fc1.weight.grad'".
std::string describe(const Whereabouts& where);

/// Returns a text such as "was killed by signal 9 (SIGKILL)" or "exited with code 3".
std::string describe(const ProcessEnded& ended);

/// Returns advice if the kernel killed the process for lack of memory; else "".
std::string out_of_memory_advice(const ProcessEnded& ended);

/// Returns the text without leading spaces.
std::string trimmed(const std::string& text);

}  // namespace weft
