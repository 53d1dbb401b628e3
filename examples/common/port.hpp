#pragma once
/// The common part of examples that train for a number of steps: options, trainer and result.

#include <functional>
#include <string>
#include <vector>

#include <weft/weft.hpp>

namespace examples {

/// An option --NAME of the program. Its value is put in the loop's config, with the type of
/// `value`, which is the default.
struct Setting {
  std::string name;
  weft::Config value;
  std::string help;
};

struct Port {
  std::string name;
  std::string about;
  /// The training loop. If it reports a text as "sample", the text is printed.
  weft::TrainLoop loop;
  std::vector<Setting> settings;
  std::vector<std::string> axes = {};  ///< two names for the mesh's axes; default: data, model
};
/// Runs the program: reads its options, trains, and shows the result. The options are `settings`
/// and --workers, --chips, --topology, --steps (config "steps"), --seed, --max-failures and --json.
/// Returns the exit code of main().
int run(const Port& port, int argc, char** argv);

/// Calls `step` for config "steps" batches, over as many epochs as needed. Reports the metrics that
/// `step` returns; this ends the step.
void for_steps(weft::TrainContext& ctx, const weft::Config& config, weft::DeviceLoader& batches,
               const std::function<weft::Metrics(const weft::Batch&)>& step);

/// Returns the digits' training images in batches of config "batch", with field "x" f32[64]. The
/// images are shuffled, and distorted at random in each epoch unless config "plain" is true. Every
/// chip has its own images.
weft::DeviceLoader digit_batches(const weft::Config& config);
/// Returns the settings --batch and --plain, which digit_batches() reads.
std::vector<Setting> digit_settings();

}  // namespace examples
