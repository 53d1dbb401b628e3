#pragma once
/// HloRunner: compiles texts of StableHLO with a real PJRT plug-in for CPUs, and runs them.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "chips/pjrt/client.hpp"
#include "spmd/reference/interpret.hpp"
#include "spmd/stablehlo/stablehlo.hpp"

namespace weft::testing {

class HloRunner {
 public:
  /// A chip's program, its inputs as global tensors, and the types of its inputs and outputs.
  struct Run {
    const Program& program;
    const Mesh& mesh;
    std::span<const TensorType> input_types;
    std::span<const TensorType> output_types;
    std::span<const Elements> inputs;
    bool detects_anomaly = false;
  };
  struct Results {
    std::vector<Elements> outputs;                  ///< global tensors
    std::vector<std::vector<std::int32_t>> faults;  ///< by chip: {op, what}; empty if no op checks
  };

  /// Returns the process's runner; null if there is no plug-in. It uses the first of
  /// real_plugins().
  static HloRunner* get();

  /// Runs the program on as many replicas as the mesh has chips, at most 8.
  Results run(const Run& run);

 private:
  explicit HloRunner(std::shared_ptr<pjrt::Client> client) : client_(std::move(client)) {}

  std::shared_ptr<pjrt::Client> client_;
};

/// Compares with a tolerance relative to the largest finite expected element, or 1 if all are
/// smaller. Integers and preds must be equal.
void expect_near(const TensorType& type, const Elements& expected, const Elements& actual,
                 double tolerance);

}  // namespace weft::testing
