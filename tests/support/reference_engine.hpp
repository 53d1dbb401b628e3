#pragma once
/// ReferenceEngine: the reference interpreter as a kind of chip. It has its own memory, computes
/// every op in double and rounds the result to its dtype, and meets the other chips through a
/// Communicator. It refuses plans for chips that can do more than its target says.

#include <memory>

#include "tests/support/engine_mesh.hpp"
#include "tests/support/target.hpp"

namespace weft::testing {

/// With kReferenceTarget.
std::unique_ptr<Engine> make_reference_engine(EngineSetup setup);
/// With kContraryTarget.
std::unique_ptr<Engine> make_contrary_engine(EngineSetup setup);

}  // namespace weft::testing
