#include "examples/common/checkpoint.hpp"

#include <filesystem>
#include <string>

#include <fmt/format.h>

namespace examples {

void save(weft::TrainContext& ctx, const weft::Module& net) {
  const auto folder = fmt::format("{}/saving-{}", ctx.run_dir(), ctx.world_rank());
  std::filesystem::create_directory(folder);
  weft::save(net, folder + "/model.safetensors", {{"step", std::to_string(ctx.step())}});
  ctx.report({{"step", ctx.step()}}, weft::Checkpoint{folder});
  std::filesystem::remove_all(folder);
}

}  // namespace examples
