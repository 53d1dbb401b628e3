#pragma once
/// Includes all that a training program needs.

#include <weft/checkpoint_manager.hpp>
#include <weft/chip.hpp>
#include <weft/compile.hpp>
#include <weft/custom_op.hpp>
#include <weft/debug.hpp>
#include <weft/functional.hpp>
#include <weft/job.hpp>
#include <weft/log.hpp>
#include <weft/loop.hpp>
#include <weft/mesh.hpp>
#include <weft/metrics.hpp>
#include <weft/module.hpp>
#include <weft/multi_head_attention.hpp>
#include <weft/nn.hpp>
#include <weft/ops.hpp>
#include <weft/optim.hpp>
#include <weft/partition_spec.hpp>
#include <weft/presets.hpp>
#include <weft/schedule.hpp>
#include <weft/state.hpp>
#include <weft/tensor.hpp>
#include <weft/train_context.hpp>
#include <weft/trainer.hpp>
#include <weft/transforms.hpp>
