#pragma once
/// The frame of an example that trains for a number of steps: its options, the trainer, the result.

#include <functional>
#include <string>
#include <vector>

#include <weft/weft.hpp>

namespace examples {

/// An option --NAME whose value is in the loop's config; it has the type of `value`, its default.
struct Setting {
  std::string name;
  weft::Config value;
  std::string help;
};

struct Port {
  std::string name;
  std::string about;
  /// It may report a text as "sample", which is shown.
  weft::TrainLoop loop;
  std::vector<Setting> settings;
  std::vector<std::string> axes = {};  ///< two names of the mesh's axes; default: data, model
};
/// Runs the program: besides its settings it has --workers, --chips, --topology, --steps (config
/// "steps"), --seed, --max-failures and --json. Returns main's exit code.
int run(const Port& port, int argc, char** argv);

/// Calls `step` with the batches of one epoch after another until as many steps have been made as
/// config "steps" says. What it returns is reported; it ends the step.
void for_steps(weft::TrainContext& ctx, const weft::Config& config, weft::DeviceLoader& batches,
               const std::function<weft::Metrics(const weft::Batch&)>& step);

/// The digits' training images in batches of config "batch", field "x" f32[64]: shuffled, and
/// redrawn in each epoch, unless config "plain" says otherwise. Every chip has its own images.
weft::DeviceLoader digit_batches(const weft::Config& config);
/// --batch and --plain, which that reads.
std::vector<Setting> digit_settings();

}  // namespace examples
