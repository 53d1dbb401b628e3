#include "actors/protocol/first_plan.hpp"

#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

#include "data/files/plain_file.hpp"
#include "transport/format/plan_file.hpp"

namespace weft {
namespace {

void write(const std::string& path, const char* data, std::size_t size) {
  std::ofstream file(path, std::ios::binary);
  file.write(data, static_cast<std::streamsize>(size));
  if (!file.flush()) fail(Errc::io, "WEFT_PLAN_TO: can't write {}", path);
}

}  // namespace

std::string plan_folder() { return path_variable("WEFT_PLAN_TO"); }

bool has_first_plan(const std::string& folder) {
  std::error_code ignored;
  return !folder.empty() && std::filesystem::exists(folder + "/first.json", ignored);
}

void write_first_plan(const std::string& folder, const FirstPlan& first) {
  const std::vector<std::byte> plan = encode_plan(first.plan);
  write(folder + "/first.weftplan", reinterpret_cast<const char*>(plan.data()), plan.size());
  const nlohmann::json json{{"site", first.site},
                            {"workers", first.num_workers},
                            {"chips_per_worker", first.chips_per_worker},
                            {"keeps_state", first.keeps_state},
                            {"arena_bytes", first.arena_bytes},
                            {"compile_seconds", first.compile_seconds}};
  const std::string text = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  write(folder + "/first.json", text.data(), text.size());
}

}  // namespace weft
