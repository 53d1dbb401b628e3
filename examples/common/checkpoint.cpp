#include "examples/common/checkpoint.hpp"

#include <filesystem>
#include <fstream>

#include <fmt/format.h>

namespace examples {

void save(weft::TrainContext& ctx, const weft::Module& net) {
  const auto folder = fmt::format("{}/saving-{}", ctx.run_dir(), ctx.world_rank());
  std::filesystem::create_directory(folder);
  for (const weft::Parameter& parameter : net.parameters()) {
    const std::vector<std::byte> bytes = parameter.to_bytes();  // all workers read it together
    if (ctx.world_rank() != 0) continue;
    std::ofstream(folder + "/" + parameter.name(), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
  }
  ctx.report({{"step", ctx.step()}}, weft::Checkpoint{folder});
  std::filesystem::remove_all(folder);
}

}  // namespace examples
