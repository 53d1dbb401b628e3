/// Runs an SPMD function on a mesh from an application with its own main loop: first on chips in
/// the application's process, then on worker processes.

#include <numeric>

#include <fmt/format.h>

#include <weft/weft.hpp>

/// Computes the norm of a vector that is sharded over all chips.
void norm(weft::TrainContext& ctx, const weft::Config& config) {
  std::vector<float> elements(config.at("size").get<std::size_t>());
  std::iota(elements.begin(), elements.end(), 1.0F);
  const weft::Tensor x = weft::to_device(elements, {std::ssize(elements)});
  weft::mark_sharding(x, *ctx.mesh(), {{"data"}});
  ctx.report({{"norm", weft::sqrt(weft::sum(x * x)).item()}, {"chips", ctx.num_devices()}});
}

int main() {
  for (const int workers : {0, 2}) {
    const weft::Result result =
        weft::Trainer(norm, {.loop_config = {{"size", 1024}},
                             .scaling = {.num_workers = workers, .topology = "4"},
                             .run = {.name = "embed"}})
            .fit();
    if (!result.ok()) {
      fmt::print(stderr, "{}\n", result.error->message);
      return 1;
    }
    fmt::print("{} chips in {}: norm {:.3f}\n", result.metrics["chips"].get<int>(),
               workers == 0 ? "this process" : "worker processes",
               result.metrics["norm"].get<double>());
  }
}
