#pragma once
/// The frame of an example that trains for a number of steps: its options, the trainer and the
/// result.

#include <functional>
#include <string>
#include <vector>

#include <weft/weft.hpp>

namespace examples {

/// An option --NAME whose value the loop's config has. It has the type of `value`, its default.
struct Setting {
  std::string name;
  weft::Config value;
  std::string help;
};

struct Port {
  std::string name;
  std::string about;
  /// The training loop. It may report a text as "sample", which is printed.
  weft::TrainLoop loop;
  std::vector<Setting> settings;
  std::vector<std::string> axes = {};  ///< two names of the mesh's axes; default: data, model
};
/// Runs the program. Besides its settings it has the options --workers, --chips, --topology,
/// --steps (config "steps"), --seed, --max-failures and --json. Returns main's exit code.
int run(const Port& port, int argc, char** argv);

/// Calls `step` with the batches of one epoch after another, config "steps" times. Reports the
/// metrics that it returns, which ends the step.
void for_steps(weft::TrainContext& ctx, const weft::Config& config, weft::DeviceLoader& batches,
               const std::function<weft::Metrics(const weft::Batch&)>& step);

/// Returns the digits' training images in batches of config "batch", with field "x" f32[64]. They
/// are shuffled, and redrawn in each epoch unless config "plain" is true. Every chip has its own
/// images.
weft::DeviceLoader digit_batches(const weft::Config& config);
/// Returns --batch and --plain, which digit_batches() reads.
std::vector<Setting> digit_settings();

}  // namespace examples
