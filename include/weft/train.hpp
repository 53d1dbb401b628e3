#pragma once
/// The training loop, the trainer that runs it, and checkpoints.

#include <weft/train/checkpoint_manager.hpp>
#include <weft/train/host_values.hpp>
#include <weft/train/loop.hpp>
#include <weft/train/state.hpp>
#include <weft/train/train_context.hpp>
#include <weft/train/trainer.hpp>
