#pragma once
/// Runs modules outside of training loops: Session, and the headers that its users need.

#include <weft/actor/parameters.hpp>
#include <weft/actor/session.hpp>
#include <weft/nn.hpp>
#include <weft/ops.hpp>
#include <weft/tensor.hpp>
