#include <weft/actors/trainer/run_folder.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/chrono.h>

#include <weft/spmd/error.hpp>

namespace weft {
namespace {

namespace fs = std::filesystem;

/// A new column writes the file anew; keys beyond these are in result.json only.
constexpr std::size_t kColumnsMax = 256;

std::string csv_field(const Metrics& value) {
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    return fmt::format("{}", value.get<double>());
  }
  const std::string text = value.is_string()
                               ? value.get<std::string>()
                               : value.dump(-1, ' ', false, Metrics::error_handler_t::replace);
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

void write(const std::string& file, const std::string& text, std::ios::openmode mode) {
  errno = 0;
  std::ofstream out(file, mode);
  out << text;
  if (!out.flush()) fail(Errc::io, "can't write {}: {}", file, std::strerror(errno));
}

Metrics to_json(const Failure& failure) {
  return {{"code", to_string(failure.code)},
          {"message", failure.message},
          {"worker", failure.worker},
          {"pid", failure.pid},
          {"signal", failure.signal},
          {"exit_code", failure.exit_code},
          {"step", failure.step},
          {"collective", failure.collective}};
}

Failure to_failure(const Metrics& json) {
  return {.code = parse_errc(json.at("code").get<std::string>()),
          .message = json.at("message"),
          .worker = json.at("worker"),
          .pid = json.at("pid"),
          .signal = json.at("signal"),
          .exit_code = json.at("exit_code"),
          .step = json.at("step"),
          .collective = json.at("collective")};
}

/// Step and number of "checkpoint_000640-1": from 10^6 on the names aren't in the order of steps.
std::pair<std::uint64_t, std::uint64_t> checkpoint_order(const fs::path& path) {
  std::istringstream name(path.filename().string().substr(std::strlen("checkpoint_")));
  std::uint64_t step = 0, number = 0;
  char dash = 0;
  name >> step >> dash >> number;
  return {step, number};
}

}  // namespace

RunFolder::RunFolder(const std::string& storage_path, const std::string& name,
                     const std::string& job_id) {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  path_ = fmt::format("{}/{}-{:%Y%m%d-%H%M%S}-{}", storage_path, name, now, job_id.substr(0, 6));
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) {
    fail(Errc::io,
         "run.storage_path: can't make the folder {}: {}; give a folder that you may write to",
         path_, error.message());
  }
}

void RunFolder::add_last(const std::vector<Metrics>& history) {
  const std::size_t known = columns_.size();
  for (const auto& [key, value] : history.back().items()) {
    if (columns_.size() == kColumnsMax) break;
    if (std::ranges::find(columns_, key) == columns_.end()) columns_.push_back(key);
  }
  const std::string file = path_ + "/progress.csv";
  if (columns_.size() == known) return write(file, csv_row(history.back()), std::ios::app);
  std::string text;
  for (const std::string& column : columns_) text += (text.empty() ? "" : ",") + csv_field(column);
  text += "\n";
  for (const Metrics& metrics : history) text += csv_row(metrics);
  write(file, text, std::ios::trunc);
}

std::string RunFolder::csv_row(const Metrics& metrics) const {
  std::string row;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (i != 0) row += ',';
    if (const auto found = metrics.find(columns_[i]); found != metrics.end()) {
      row += csv_field(*found);
    }
  }
  return row + "\n";
}

void RunFolder::keep_checkpoints(int num_to_keep, const std::string& needed) const {
  if (num_to_keep == 0) return;
  std::error_code error;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(path_, error)) {
    if (entry.path().filename().string().starts_with("checkpoint_")) found.push_back(entry.path());
  }
  std::ranges::sort(found, {}, checkpoint_order);
  for (std::size_t i = 0; !error && i + static_cast<std::size_t>(num_to_keep) < found.size(); ++i) {
    if (checkpoint_order(found[i]) < checkpoint_order(needed)) fs::remove_all(found[i], error);
  }
  if (error) fail(Errc::io, "can't remove old checkpoints in {}: {}", path_, error.message());
}

void RunFolder::write_result(const Result& result) const {
  Metrics json{{"job", result.job.id},
               {"name", result.job.name},
               {"num_workers", result.job.num_workers},
               {"ok", result.ok()},
               {"metrics", result.metrics},
               {"metrics_history", result.metrics_history}};
  if (result.job.mesh) {
    json["mesh"] = {{"shape", result.job.mesh->shape()}, {"axes", result.job.mesh->axis_names()}};
  }
  if (result.checkpoint) json["checkpoint"] = result.checkpoint->path;
  if (result.error) json["error"] = to_json(*result.error);
  json["failures"] = Metrics::array();
  for (const Failure& failure : result.failures) json["failures"].push_back(to_json(failure));
  const std::string file = path_ + "/result.json";
  write(file + ".new", json.dump(1, ' ', false, Metrics::error_handler_t::replace) + "\n",
        std::ios::trunc);
  std::error_code error;
  fs::rename(file + ".new", file, error);
  if (error) fail(Errc::io, "can't write {}: {}", file, error.message());
}

Result read_result(const std::string& path) {
  const std::string file = path + "/result.json";
  std::ifstream in(file);
  if (!in) fail(Errc::io, "can't open {}", file);
  try {
    const Metrics json = Metrics::parse(in);
    Result result;
    result.path = path;
    result.metrics = json.at("metrics");
    result.metrics_history = json.at("metrics_history").get<std::vector<Metrics>>();
    result.job = {.id = json.at("job"),
                  .name = json.at("name"),
                  .path = path,
                  .num_workers = json.at("num_workers"),
                  .mesh = {}};
    if (const auto mesh = json.find("mesh"); mesh != json.end()) {
      result.job.mesh.emplace(mesh->at("shape").get<std::vector<std::int64_t>>(),
                              mesh->at("axes").get<std::vector<std::string>>());
    }
    if (json.contains("checkpoint")) result.checkpoint = Checkpoint{json["checkpoint"]};
    if (json.contains("error")) result.error = to_failure(json["error"]);
    for (const Metrics& failure : json.at("failures")) {
      result.failures.push_back(to_failure(failure));
    }
    return result;
  } catch (const nlohmann::json::exception& e) {
    fail(Errc::corrupt, "{}: {}", file, e.what());
  }
}

std::string store_checkpoint(const std::string& run_dir, std::uint64_t step, std::uint32_t number,
                             int worker, const std::string& from) {
  const std::string suffix = number == 0 ? "" : fmt::format("-{}", number);
  const std::string to = fmt::format("{}/checkpoint_{:06}{}", run_dir, step, suffix);
  const fs::path part = fmt::format("{}/.part-{}", run_dir, worker);
  try {
    fs::remove_all(part);  // of a worker that was killed
    fs::copy(from, part, fs::copy_options::recursive);
    fs::create_directories(to);
    const std::vector<fs::directory_entry> entries(fs::recursive_directory_iterator(part), {});
    for (const auto& entry : entries) {
      const fs::path place = to / entry.path().lexically_relative(part);
      if (entry.is_directory()) {
        fs::create_directories(place);
      } else {
        fs::rename(entry.path(), place);
      }
    }
    fs::remove_all(part);
  } catch (const fs::filesystem_error& e) {
    fail(Errc::io, "can't copy the checkpoint {} to {}: {}", from, to, e.code().message());
  }
  return to;
}

}  // namespace weft
