#pragma once
/// All of weft that a training program needs.

#include <weft/actors/device/chip.hpp>
#include <weft/actors/device/chip_array.hpp>
#include <weft/actors/trainer/trainer.hpp>
#include <weft/actors/worker/train_context.hpp>
#include <weft/spmd/mesh/mesh.hpp>
#include <weft/spmd/mesh/partition_spec.hpp>
#include <weft/spmd/mesh/topology.hpp>
#include <weft/spmd/tensor/autocast.hpp>
#include <weft/spmd/tensor/checkpoint.hpp>
#include <weft/spmd/tensor/compile.hpp>
#include <weft/spmd/tensor/custom_op.hpp>
#include <weft/spmd/tensor/functional.hpp>
#include <weft/spmd/tensor/metrics.hpp>
#include <weft/spmd/tensor/micro_batches.hpp>
#include <weft/spmd/tensor/module.hpp>
#include <weft/spmd/tensor/multi_head_attention.hpp>
#include <weft/spmd/tensor/nn.hpp>
#include <weft/spmd/tensor/ops.hpp>
#include <weft/spmd/tensor/optim.hpp>
#include <weft/spmd/tensor/presets.hpp>
#include <weft/spmd/tensor/random.hpp>
#include <weft/spmd/tensor/schedule.hpp>
#include <weft/spmd/tensor/sequential.hpp>
#include <weft/spmd/tensor/tensor.hpp>
#include <weft/spmd/tensor/visualize.hpp>
