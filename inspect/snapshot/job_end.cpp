#include "inspect/snapshot/job_end.hpp"

#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

#include "data/files/file_bytes.hpp"

namespace weft {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kResultBytesMax = std::size_t{256} << 20;

JobFailure to_failure(const Json& json) {
  return {.code = json.at("code"),
          .message = json.at("message"),
          .worker = json.at("worker"),
          .pid = json.at("pid"),
          .signal = json.at("signal"),
          .exit_code = json.at("exit_code"),
          .step = json.at("step"),
          .collective = json.at("collective"),
          .thrown_at = json.value("thrown_at", "")};
}

}  // namespace

std::optional<JobEnd> read_job_end(const std::string& run_dir) {
  const std::string path = run_dir + "/result.json";
  const std::optional<std::string> text = find_file_text(path, kResultBytesMax);
  if (!text) return {};
  try {
    const Json json = Json::parse(*text);
    JobEnd end{.job = json.at("job"),
               .name = json.at("name"),
               .ended_by = json.at("ended_by"),
               .num_workers = json.at("num_workers"),
               .checkpoint = json.value("checkpoint", ""),
               .step = json.value("step", std::uint64_t{0})};
    if (json.contains("error")) end.error = to_failure(json["error"]);
    for (const Json& loss : json.at("failures")) end.losses.push_back(to_failure(loss));
    return end;
  } catch (const nlohmann::json::exception& e) {
    fail(Errc::corrupt, "{}: {}", path, e.what());
  }
}

}  // namespace weft
