#pragma once
/// A kind of chip that runs the reference interpreter. It has its own memory, computes every op in
/// double, rounds the result to its dtype, and exchanges data with other chips through a
/// Communicator. It refuses plans that use abilities its target doesn't have.

#include <memory>

#include "tests/support/engine_mesh.hpp"
#include "tests/support/target.hpp"

namespace weft::testing {

/// Makes an engine with kReferenceTarget.
std::unique_ptr<Engine> make_reference_engine(EngineSetup setup);
/// Makes an engine with kContraryTarget.
std::unique_ptr<Engine> make_contrary_engine(EngineSetup setup);

}  // namespace weft::testing
