#pragma once
/// Deterministic tests of actors. See weft/actor/actor_test.hpp.

#include <weft/actor.hpp>
#include <weft/actor/actor_test.hpp>
