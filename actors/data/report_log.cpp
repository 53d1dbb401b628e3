#include "actors/data/report_log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>

#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

using Json = nlohmann::json;

std::string encode(const Report& report) {
  const std::vector<std::uint8_t> metrics(report.metrics.begin(), report.metrics.end());
  std::string record(4, '\0');
  Json::to_cbor(Json{report.worker, report.generation, report.step, report.number,
                     Json::binary(metrics), report.checkpoint},
                record);
  const auto bytes = static_cast<std::uint32_t>(record.size() - 4);
  std::memcpy(record.data(), &bytes, 4);
  return record;
}

Report decode(std::string_view record) {
  const Json json = Json::from_cbor(record);
  const auto& metrics = json.at(4).get_binary();
  return {.worker = json.at(0),
          .generation = json.at(1),
          .step = json.at(2),
          .number = json.at(3),
          .metrics = {metrics.begin(), metrics.end()},
          .checkpoint = json.at(5)};
}

/// Returns the first record of `text`; std::nullopt if that record is incomplete.
std::optional<std::string_view> first_record(std::string_view text) {
  std::uint32_t bytes = 0;
  if (text.size() < 4) return {};
  std::memcpy(&bytes, text.data(), 4);
  if (text.size() - 4 < bytes) return {};
  return text.substr(4, bytes);
}

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

[[noreturn]] void fail_io(const std::string& path) {
  fail(Errc::io, "the log of reports {}: {}", path, std::strerror(errno));
}

}  // namespace

ReportLog::ReportLog(const std::string& path) : path_(path) {
  if (path.empty()) return;
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file_ < 0) fail_io(path_);
  const std::string text = read(path_);
  std::string_view rest = text;
  while (const auto record = first_record(rest)) rest.remove_prefix(4 + record->size());
  if (!rest.empty() && ::ftruncate(file_, static_cast<off_t>(text.size() - rest.size())) != 0) {
    fail_io(path_);
  }
}

ReportLog::~ReportLog() {
  if (file_ >= 0) ::close(file_);
}

void ReportLog::add(const Report& report) {
  if (file_ < 0) return;
  const std::string record = encode(report);
  std::string_view rest = record;
  while (!rest.empty()) {
    const ssize_t written = ::write(file_, rest.data(), rest.size());
    if (written < 0 && errno != EINTR) fail_io(path_);
    if (written > 0) rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::vector<Report> ReportLog::after(std::uint64_t count) const {
  std::vector<Report> reports;
  if (file_ < 0) return reports;
  const std::string text = read(path_);
  std::string_view rest = text;
  for (std::uint64_t i = 0; const auto record = first_record(rest); ++i) {
    rest.remove_prefix(4 + record->size());
    if (i >= count) reports.push_back(decode(*record));
  }
  return reports;
}

std::optional<std::string> find_not_finite(const Metrics& metrics) {
  if (!metrics.is_object()) return {};
  for (const auto& [key, value] : metrics.items()) {
    if (!value.is_number_float()) continue;
    const double number = value.get<double>();
    if (std::isfinite(number)) continue;
    return fmt::format("{} = {}", key, std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf");
  }
  return {};
}

}  // namespace weft
