#pragma once
/// Runs the measured job: it trains the network of examples/digits on generated images, and further
/// parameters of any size.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <weft/weft.hpp>

namespace weft::bench {

struct Training {
  int workers = 4;
  int chips = 4;  ///< per worker
  std::uint64_t steps = 200;
  int state_mib = 0;  ///< MiB of further parameters and their AdamW state, on each chip
  FailureConfig failure = {};
  int check_replicas_every = 0;
  std::string storage_path = {};
};

/// Runs the training. The last report has "step_us": the microseconds of worker 0's steps since the
/// worker last entered its loop. A step is measured from making its data to the end of its report.
Result train(const Training& training, std::vector<std::shared_ptr<Callback>> callbacks = {});

}  // namespace weft::bench
