#include "tools/weft/devices/plugin_report.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

#include "chips/pjrt/client.hpp"

namespace weft {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

/// Asks the plug-in for its devices. Runs in the child process.
Json ask(const pjrt::PluginFile& file) try {
  pjrt::preload_libraries(file);
  const pjrt::Plugin& plugin = pjrt::Plugin::load(file.path);
  pjrt::CompileFlags options;
  // By default the plug-in reserves most of a GPU's memory, which a job may need.
  if (file.kind == DeviceKind::gpu) options["preallocate"] = false;
  const auto client = pjrt::Client::make(plugin, options, [](const std::string&) {});
  Json devices = Json::array();
  for (std::size_t i = 0; i < client->devices().size(); ++i) {
    Json& device = devices.emplace_back(
        Json{{"id", client->devices()[i].id}, {"kind", client->devices()[i].kind}});
    const auto memory = client->memory(i);
    if (!memory) continue;
    device["used_bytes"] = memory->used_bytes;
    if (memory->limit_bytes) device["limit_bytes"] = *memory->limit_bytes;
  }
  return {{"platform", client->platform()},
          {"version", client->platform_version()},
          {"api", fmt::format("0.{}", plugin.minor())},
          {"devices", devices}};
} catch (const std::exception& error) {
  return {{"error", error.what()}};
}

PluginReport parse(const std::string& text) {
  const Json json = Json::parse(text);
  PluginReport report{.platform = json.value("platform", ""),
                      .version = json.value("version", ""),
                      .api = json.value("api", ""),
                      .error = json.value("error", "")};
  for (const Json& device : json.value("devices", Json::array())) {
    ReportedDevice& reported = report.devices.emplace_back();
    reported.id = device["id"];
    reported.kind = device["kind"];
    if (device.contains("used_bytes")) reported.used_bytes = device["used_bytes"];
    if (device.contains("limit_bytes")) reported.limit_bytes = device["limit_bytes"];
  }
  return report;
}

/// Reads until the other end is closed. Returns false if that takes too long.
bool read_all(int fd, std::chrono::milliseconds limit, std::string& text) {
  const Clock::time_point end = Clock::now() + limit;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    pollfd waited{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&waited, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    char bytes[4096];
    const ssize_t count = ::read(fd, bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    text.append(bytes, static_cast<std::size_t>(count));
  }
}

/// Runs the child process: writes the answer, and ends without destructors, because the objects
/// belong to the parent.
[[noreturn]] void answer(const pjrt::PluginFile& file, int fd) {
  const std::string text = ask(file).dump(-1, ' ', false, Json::error_handler_t::replace);
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = ::write(fd, text.data() + done, text.size() - done);
    if (count < 0 && errno != EINTR) ::_exit(1);
    done += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
  }
  ::_exit(0);
}

}  // namespace

PluginReport report_of(const pjrt::PluginFile& file, std::chrono::milliseconds limit) {
  int ends[2];
  const bool is_made = ::pipe2(ends, O_CLOEXEC) == 0;
  const pid_t pid = is_made ? ::fork() : -1;
  if (pid < 0) fail(Errc::io, "can't start a process for {}: {}", file.path, std::strerror(errno));
  if (pid == 0) answer(file, ends[1]);
  ::close(ends[1]);
  std::string text;
  const bool has_ended = read_all(ends[0], limit, text);
  ::close(ends[0]);
  if (!has_ended) ::kill(pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!has_ended) {
    return {.error = fmt::format("it hasn't answered within {} s; another process may have its "
                                 "device",
                                 std::chrono::duration<double>(limit).count())};
  }
  if (WIFSIGNALED(status)) {
    return {.error = fmt::format("it ended its process by signal {} ({})", WTERMSIG(status),
                                 ::strsignal(WTERMSIG(status)))};
  }
  if (text.empty()) {
    return {.error = fmt::format("it ended its process with code {}", WEXITSTATUS(status))};
  }
  return parse(text);
}

}  // namespace weft
