#pragma once
/// ReferenceEngine: the reference interpreter as a kind of chip. It has its own memory, computes
/// every op in double, rounds the result to its dtype, and uses a Communicator to meet the other
/// chips. It refuses plans for chips with more abilities than its target has.

#include <memory>

#include "tests/support/engine_mesh.hpp"
#include "tests/support/target.hpp"

namespace weft::testing {

/// Makes an engine with kReferenceTarget.
std::unique_ptr<Engine> make_reference_engine(EngineSetup setup);
/// Makes an engine with kContraryTarget.
std::unique_ptr<Engine> make_contrary_engine(EngineSetup setup);

}  // namespace weft::testing
