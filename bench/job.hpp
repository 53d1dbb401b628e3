#pragma once
/// run_job(): runs a job on chips of this process.

#include <unistd.h>

#include <filesystem>
#include <functional>

#include <fmt/format.h>
#include <weft/weft.hpp>

namespace weft::bench {

/// Runs the loop on `chips` chips, which divide the rows of batches. Rethrows the loop's error.
inline void run_job(int chips, const std::function<void(TrainContext&)>& loop) {
  const std::string folder =
      std::filesystem::temp_directory_path() / fmt::format("weft-bench-{}", ::getpid());
  const Result result =
      Trainer([&](TrainContext& context) { loop(context); },
              {.scaling = {.num_workers = 0},
               .backend = {.spmd = {.mesh_shape = {chips}, .axis_names = {"data"}}},
               .run = {.name = "bench", .storage_path = folder}})
          .fit();
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  if (!result.ok()) fail(result.error->code, "{}", result.error->message);
}

}  // namespace weft::bench
