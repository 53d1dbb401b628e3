#pragma once
/// ReferenceEngine: the reference interpreter as a kind of chip. It has its own memory, computes
/// every op in double and rounds the result to its dtype, and meets the other chips through a
/// Communicator.

#include <memory>

#include "tests/support/engine_mesh.hpp"

namespace weft::testing {

std::unique_ptr<Engine> make_reference_engine(EngineSetup setup);

}  // namespace weft::testing
