#include "tools/weft/plan/first_step.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

#include "data/files/file_bytes.hpp"
#include "inspect/programs/chip_memory.hpp"
#include "inspect/views/table.hpp"
#include "tools/weft/launch/launched_program.hpp"
#include "transport/format/plan_file.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// A temporary folder for one program's plan and run folder. The destructor removes it.
class PlanFolder {
 public:
  PlanFolder() {
    std::string path = fs::temp_directory_path() / "weft-plan-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) fail(Errc::io, "{}: {}", path, std::strerror(errno));
    path_ = path;
  }
  ~PlanFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  PlanFolder(const PlanFolder&) = delete;
  PlanFolder& operator=(const PlanFolder&) = delete;
  std::string file(const char* name) const { return path_ + '/' + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Runs the program with its stdout in the file `output`. The output is shown if the program makes
/// no plan.
int run(const LaunchOptions& options, const std::string& output) {
  const int fd = ::open(output.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) fail(Errc::io, "{}: {}", output, std::strerror(errno));
  const LaunchedProgram program(options.command, options.folder, {{fd, STDOUT_FILENO}});
  ::close(fd);
  return exit_code(program.wait());
}

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

FirstStep parse(const Json& json, Plan plan) {
  return {.plan = std::move(plan),
          .site = json.at("site"),
          .num_workers = json.at("workers"),
          .chips_per_worker = json.at("chips_per_worker"),
          .keeps_state = json.at("keeps_state"),
          .arena_bytes = json.at("arena_bytes"),
          .compile_seconds = json.at("compile_seconds")};
}

}  // namespace

std::optional<FirstStep> trace_first_step(const LaunchOptions& options, int& code) {
  check(options);
  const PlanFolder folder;
  for (const auto& [name, value] : variables_of(options)) {
    ::setenv(name.c_str(), value.c_str(), 1);
  }
  ::setenv("WEFT_PLAN_TO", folder.path().c_str(), 1);
  ::setenv("WEFT_LOG", "off", 0);  // the job ends after its first step, which is no error here
  const int ended = run(options, folder.file("stdout"));
  const std::string head = read(folder.file("first.json"));
  if (head.empty()) {
    fmt::print(stderr, "{}", read(folder.file("stdout")));
    fmt::print(stderr,
               "weft plan: {} reached no first step and ended with {}; its output is above. "
               "Expected a program that calls fit(), whose loop calls sync() or a compiled "
               "function\n",
               options.command.front(), ended);
    code = kRefused;
    return {};
  }
  const std::string file = folder.file("first.weftplan");
  Plan plan = decode_plan(read_file_bytes(file, kPlanBytesMax));
  verify(plan, mesh_of(plan));
  try {
    return parse(Json::parse(head), std::move(plan));
  } catch (const Json::exception& e) {
    fail(Errc::corrupt, "{}: {}; check that the program and this command have the same version",
         head, e.what());
  }
}

std::vector<std::string> contradictions(const FirstStep& step, const HostRoom& room) {
  const ChipMemory memory = memory_of(step.plan, step.keeps_state);
  std::vector<std::string> found;
  const auto chips = static_cast<std::uint64_t>(step.num_workers * step.chips_per_worker);
  const auto all = chips * static_cast<std::uint64_t>(memory.total());
  if (all > room.shm_free_bytes) {
    const std::uint64_t mib = all / (1U << 20) + 1;
    found.push_back(
        fmt::format("/dev/shm has {} MiB free, but {} chips need {} MiB: mount -o "
                    "remount,size={}m /dev/shm, or in a container docker run --shm-size={}m; "
                    "or shard more tensors",
                    room.shm_free_bytes >> 20, chips, mib, mib + mib / 2, mib + mib / 2));
  }
  if (static_cast<std::uint64_t>(memory.total()) > step.arena_bytes) {
    found.push_back(
        fmt::format("a chip needs {} bytes, but may use {} (WEFT_ARENA_BYTES): set a larger value",
                    memory.total(), step.arena_bytes));
  }
  return found;
}

}  // namespace weft
