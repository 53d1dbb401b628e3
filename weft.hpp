#pragma once
/// All of weft that a training program needs.

#include <weft/actors/trainer/trainer.hpp>
#include <weft/actors/worker/context.hpp>
#include <weft/spmd/mesh/hybrid_mesh.hpp>
#include <weft/spmd/mesh/mesh.hpp>
#include <weft/spmd/mesh/partition_spec.hpp>
#include <weft/spmd/tensor/module.hpp>
#include <weft/spmd/tensor/optim.hpp>
#include <weft/spmd/tensor/tensor.hpp>
