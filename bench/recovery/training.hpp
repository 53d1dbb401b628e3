#pragma once
/// The job that is measured: the network of examples/digits, on images that are made up.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <weft/weft.hpp>

namespace weft::bench {

struct Training {
  int workers = 4;
  int chips = 4;  ///< of each worker
  std::uint64_t steps = 200;
  FailureConfig failure = {};
  int check_replicas_every = 0;
  std::string storage_path = {};
};

/// Trains. The last report has the microseconds of worker 0's steps since its loop was entered,
/// "step_us": each from its data to the end of its report.
Result train(const Training& training, std::vector<std::shared_ptr<Callback>> callbacks = {});

}  // namespace weft::bench
