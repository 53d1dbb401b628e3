#pragma once
/// HloRunner: compiles and runs StableHLO texts with a real PJRT plug-in for CPUs.

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
  /// A chip's program and its inputs. The inputs, and all types, are those of global tensors.
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

  /// Returns the process's runner, which uses the first of real_plugins(), or null if there is no
  /// plug-in.
  static HloRunner* get();

  /// Runs the program on one replica for each chip of the mesh, which has at most 8 chips.
  Results run(const Run& run);

 private:
  explicit HloRunner(std::shared_ptr<pjrt::Client> client) : client_(std::move(client)) {}

  std::shared_ptr<pjrt::Client> client_;
};

/// Expects equal integers and preds. Floating elements may differ by `tolerance` times the largest
/// finite expected element, or by `tolerance` if that element is below 1.
void expect_near(const TensorType& type, const Elements& expected, const Elements& actual,
                 double tolerance);

}  // namespace weft::testing
