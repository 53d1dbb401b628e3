#include "actors/data/run_folder.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/ranges.h>

#include <weft/tensor/error.hpp>

#include "data/files/file_bytes.hpp"
#include "data/files/file_system.hpp"
#include "spmd/mesh/hybrid_mesh.hpp"
#include "transport/job/job_record.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;

/// The limit on columns in progress.csv. It exists because each new column rewrites the whole file.
/// Further keys appear only in result.json.
constexpr std::size_t kColumnsMax = 256;
constexpr std::size_t kResultBytesMax = std::size_t{256} << 20;

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

/// Returns why a run's folder is missing; "" if it exists.
std::string missing(const std::string& folder) {
  std::error_code ignored;
  if (fs::is_directory(folder, ignored)) return {};
  return fmt::format(
      "the run's folder {} was removed while the job ran: leave it there until the job has ended",
      folder);
}

void write(const std::string& file, const std::string& text, std::ios::openmode mode) {
  errno = 0;
  std::ofstream out(file, mode);
  out << text;
  if (out.flush()) return;
  const int error = errno;
  if (error == ENOSPC || error == EDQUOT) {
    fail(Errc::no_space, "can't write {}: {}: {}", file, std::strerror(error),
         describe_room(file, text.size()));
  }
  const std::string why = missing(fs::path(file).parent_path());
  fail(Errc::io, "can't write {}: {}", file, why.empty() ? std::strerror(error) : why);
}

std::string text_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Returns the lines of a CSV, including their newlines. An incomplete last line is left out.
std::vector<std::string> lines_of(const std::string& csv) {
  std::vector<std::string> lines;
  bool quoted = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < csv.size(); ++i) {
    if (csv[i] == '"') quoted = !quoted;
    if (csv[i] != '\n' || quoted) continue;
    lines.push_back(csv.substr(begin, i + 1 - begin));
    begin = i + 1;
  }
  return lines;
}

/// Splits a line into the fields that csv_field() has written.
std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    const bool reopens = c == '"' && !quoted && !fields.back().empty();
    if (c == '"') quoted = !quoted;
    if (c == ',' && !quoted) {
      fields.emplace_back();
    } else if (reopens || (c != '"' && (c != '\n' || quoted))) {
      fields.back() += c;
    }
  }
  return fields;
}

Metrics to_json(const Failure& failure) {
  return {{"code", to_string(failure.code)},
          {"message", failure.message},
          {"worker", failure.worker},
          {"pid", failure.pid},
          {"signal", failure.signal},
          {"exit_code", failure.exit_code},
          {"step", failure.step},
          {"collective", failure.collective},
          {"thrown_at", failure.thrown_at}};
}

Failure to_failure(const Metrics& json) {
  return {.code = parse_errc(json.at("code").get<std::string>()),
          .message = json.at("message"),
          .worker = json.at("worker"),
          .pid = json.at("pid"),
          .signal = json.at("signal"),
          .exit_code = json.at("exit_code"),
          .step = json.at("step"),
          .collective = json.at("collective"),
          .thrown_at = json.value("thrown_at", "")};  // files of older versions don't have it
}

constexpr std::array<std::string_view, 6> kEndedBy = {"loops",  "failure", "stop",
                                                      "cancel", "signal",  "callback"};

EndedBy parse_ended_by(const std::string& text) {
  const auto found = std::ranges::find(kEndedBy, text);
  if (found == kEndedBy.end()) fail(Errc::corrupt, "ended_by = \"{}\"", text);
  return static_cast<EndedBy>(found - kEndedBy.begin());
}

/// A folder that store_checkpoint() made. Folders are ordered by step and number, because names of
/// steps from 10^6 on have more digits, so they would be ordered wrongly.
struct StoredFolder {
  std::uint64_t step = 0;
  std::uint64_t number = 0;
  fs::path path{};

  /// Returns std::nullopt for a folder with another kind of name, such as "checkpoint_best".
  static std::optional<StoredFolder> of(const fs::path& path) {
    const std::string name = path.filename().string();
    constexpr std::string_view kPrefix = "checkpoint_";
    if (!name.starts_with(kPrefix)) return {};
    StoredFolder folder{.path = path};
    const char* const end = name.data() + name.size();
    const auto step = std::from_chars(name.data() + kPrefix.size(), end, folder.step);
    if (step.ec != std::errc()) return {};
    if (step.ptr == end) return folder;
    const auto number = std::from_chars(step.ptr + 1, end, folder.number);
    if (*step.ptr != '-' || number.ec != std::errc() || number.ptr != end) return {};
    return folder;
  }
};

}  // namespace

std::string_view to_string(EndedBy ended_by) noexcept {
  return kEndedBy.at(static_cast<std::size_t>(ended_by));
}

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
  reserve_room(path_);
}

RunFolder::~RunFolder() { free_room(path_); }

RunFolder::RunFolder(const std::string& path) : path_(path) {
  const std::string file = path + "/progress.csv";
  const std::string text = text_of(file);
  const std::vector<std::string> lines = lines_of(text);
  if (!lines.empty()) columns_ = fields_of(lines.front());
  const std::string whole = fmt::format("{}", fmt::join(lines, ""));
  if (whole != text) write(file, whole, std::ios::trunc);
}

std::vector<std::string> RunFolder::rows() const {
  std::vector<std::string> lines = lines_of(text_of(path_ + "/progress.csv"));
  if (!lines.empty()) lines.erase(lines.begin());
  return lines;
}

void RunFolder::drop_last_rows(std::size_t count) const {
  if (count == 0) return;
  const std::string file = path_ + "/progress.csv";
  std::vector<std::string> lines = lines_of(text_of(file));
  lines.resize(lines.size() - std::min(count, lines.size()));
  write(file, fmt::format("{}", fmt::join(lines, "")), std::ios::trunc);
}

void RunFolder::require() const {
  if (const std::string why = missing(path_); !why.empty()) fail(Errc::io, "{}", why);
}

void RunFolder::add(const Metrics& report) {
  const std::size_t known = columns_.size();
  for (const auto& [key, value] : report.items()) {
    if (columns_.size() == kColumnsMax) break;
    if (std::ranges::find(columns_, key) == columns_.end()) columns_.push_back(key);
  }
  const std::string file = path_ + "/progress.csv";
  if (columns_.size() == known) return write(file, csv_row(report), std::ios::app);
  std::string text;
  for (const std::string& column : columns_) text += (text.empty() ? "" : ",") + csv_field(column);
  text += '\n';
  for (std::string& row : rows()) text += row.insert(row.size() - 1, columns_.size() - known, ',');
  write(file, text + csv_row(report), std::ios::trunc);
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

void RunFolder::keep_checkpoints(int max_to_keep, std::uint64_t needed_step) const {
  if (max_to_keep == 0) return;
  std::error_code error;
  std::vector<StoredFolder> found;
  for (const auto& entry : fs::directory_iterator(path_, error)) {
    if (auto folder = StoredFolder::of(entry.path())) found.push_back(std::move(*folder));
  }
  std::ranges::sort(
      found, {}, [](const StoredFolder& folder) { return std::pair(folder.step, folder.number); });
  for (std::size_t i = 0; !error && i + static_cast<std::size_t>(max_to_keep) < found.size(); ++i) {
    if (found[i].step < needed_step) fs::remove_all(found[i].path, error);
  }
  if (error) fail(Errc::io, "can't remove old checkpoints in {}: {}", path_, error.message());
}

Metrics to_json(const std::vector<Validation>& validations) {
  Metrics json = Metrics::array();
  for (const Validation& validation : validations) {
    json.push_back({{"step", validation.step},
                    {"checkpoint", validation.checkpoint.path},
                    {"state", validation.state},
                    {"metrics", validation.metrics},
                    {"error", validation.error},
                    {"seconds", validation.seconds}});
  }
  return json;
}

void RunFolder::write_result(const Result& result, std::uint64_t step) const {
  Metrics json{{"job", result.job.id},
               {"name", result.job.name},
               {"num_workers", result.job.num_workers},
               {"ok", result.ok()},
               {"state", result.ok()          ? "succeeded"
                         : result.cancelled() ? "cancelled"
                                              : "failed"},
               {"step", step},
               {"ended_by", to_string(result.ended_by)},
               {"signal", result.signal},
               {"loop_config_xxh3", result.config_digest},
               {"metrics", result.metrics},
               {"worker_metrics", result.worker_metrics},
               {"returned", result.returned},
               {"validations", to_json(result.validations)},
               {"metrics_history", result.metrics_history}};
  if (result.job.mesh) {
    const Mesh& mesh = *result.job.mesh;
    json["mesh"] = {{"shape", mesh.shape()}, {"axes", mesh.axis_names()}};
    if (mesh.dcn_atoms() != 0) json["mesh"]["hosts"] = dcn_shape(mesh);
  }
  if (result.checkpoint) json["checkpoint"] = result.checkpoint->path;
  if (result.best_checkpoint) json["best_checkpoint"] = result.best_checkpoint->path;
  if (result.error) json["error"] = to_json(*result.error);
  json["failures"] = Metrics::array();
  for (const Failure& failure : result.failures) json["failures"].push_back(to_json(failure));
  const std::string file = path_ + "/result.json";
  const auto text = [&] {
    return json.dump(1, ' ', false, Metrics::error_handler_t::replace) + "\n";
  };
  free_room(path_);
  try {
    write(file + ".new", text(), std::ios::trunc);
  } catch (const Error& e) {
    if (e.code() != Errc::no_space) throw;
    json["metrics_history"] = Metrics::array();  // progress.csv still has the rows for which the
                                                 // disk had room
    write(file + ".new", text(), std::ios::trunc);
  }
  std::error_code error;
  fs::rename(file + ".new", file, error);
  if (error) fail(Errc::io, "can't write {}: {}", file, error.message());
}

Result Result::load(const std::string& path) {
  const std::string file = path + "/result.json";
  std::error_code ignored;
  if (!fs::exists(file, ignored)) {
    fail(Errc::not_found,
         "Result::load: {} has no result.json: expected the folder of a run that has ended "
         "(Result::path); `weft inspect show {}` shows a run that was killed",
         path, path);
  }
  const std::string text = read_file_text(file, kResultBytesMax);
  try {
    const Metrics json = Metrics::parse(text);
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
    result.ended_by = parse_ended_by(json.at("ended_by").get<std::string>());
    result.signal = json.at("signal");
    result.config_digest = json.at("loop_config_xxh3");
    result.worker_metrics = json.at("worker_metrics").get<std::vector<Metrics>>();
    if (json.contains("returned")) result.returned = json["returned"].get<std::vector<Metrics>>();
    for (const Metrics& entry : json.value("validations", Metrics::array())) {
      result.validations.push_back({.step = entry.at("step"),
                                    .checkpoint = {entry.at("checkpoint")},
                                    .state = entry.at("state"),
                                    .metrics = entry.at("metrics"),
                                    .error = entry.at("error"),
                                    .seconds = entry.at("seconds")});
    }
    if (json.contains("checkpoint")) result.checkpoint = Checkpoint{json["checkpoint"]};
    if (json.contains("best_checkpoint")) {
      result.best_checkpoint = Checkpoint{json["best_checkpoint"]};
    }
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
    fs::remove_all(part);  // a killed worker may have left this folder
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
    const std::string why = missing(run_dir);
    fail(Errc::io, "can't copy the checkpoint {} to {}: {}", from, to,
         why.empty() ? e.code().message() : why);
  }
  return to;
}

}  // namespace weft
