#include "actors/link/environment.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>

#include <fmt/ranges.h>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

constexpr std::string_view kUnixScheme = "unix:";
constexpr std::string_view kTlsScheme = "tls://";

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string required(const char* name) {
  std::string value = variable(name);
  if (value.empty()) {
    fail(Errc::invalid_argument,
         "{} is not set, but WEFT_JOB_TOKEN is: a worker needs both; to start a trainer, unset "
         "WEFT_JOB_TOKEN",
         name);
  }
  return value;
}

int required_number(const char* name) {
  const std::string text = required(name);
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) {
    fail(Errc::invalid_argument, "{} = \"{}\": expected a number from 0 up", name, text);
  }
  return value;
}

}  // namespace

std::optional<WorkerEnvironment> worker_environment() {
  if (variable("WEFT_JOB_TOKEN").empty()) return {};
  WorkerEnvironment environment{.job_id = required("WEFT_JOB_ID"),
                                .token = required("WEFT_JOB_TOKEN"),
                                .coordinator_address = required("WEFT_COORDINATOR_ADDRESS"),
                                .num_processes = required_number("WEFT_NUM_PROCESSES"),
                                .process_index = required_number("WEFT_PROCESS_INDEX"),
                                .job_folder = required("WEFT_JOB_FOLDER"),
                                .memory_id = variable("WEFT_MEMORY_ID"),
                                .loop = variable("WEFT_LOOP"),
                                .actors = variable("WEFT_ACTOR_SYSTEM")};
  if (environment.process_index >= environment.num_processes) {
    fail(Errc::invalid_argument,
         "WEFT_PROCESS_INDEX = {}: expected less than WEFT_NUM_PROCESSES = {}",
         environment.process_index, environment.num_processes);
  }
  environment.place = worker_place([](const char* name) { return std::getenv(name); });
  const bool has_one_host = environment.place.count == 1;
  if (has_one_host && environment.coordinator_address.starts_with(kTlsScheme)) {
    environment.tls.certificate = required("WEFT_TLS_CERTIFICATE");
    environment.tls.key = required("WEFT_TLS_KEY");
    environment.tls.ca = required("WEFT_TLS_CA");
  }
  return environment;
}

void forget_worker_environment() noexcept {
  for (const char* name : {"WEFT_JOB_TOKEN", "WEFT_LOOP", "WEFT_LOOP_OBJECT", "WEFT_LOOP_BUILD",
                           "WEFT_ACTOR_SYSTEM"}) {
    // unsetenv() isn't used, because it moves entries that another thread may be reading by
    // getenv().
    if (char* value = std::getenv(name)) std::memset(value, 0, std::strlen(value));
  }
}

std::vector<std::string> to_variables(const WorkerPlace& place, const std::optional<Mesh>& mesh) {
  std::vector<std::string> variables{
      "WEFT_JOB_ID=" + place.job_id,
      fmt::format("WEFT_NUM_PROCESSES={}", place.num_processes),
      fmt::format("WEFT_PROCESS_INDEX={}", place.process_index),
      fmt::format("WEFT_DEVICE={}", to_string(place.device)),
  };
  for (const char* name :
       {"WEFT_MESH_SHAPE", "WEFT_DATA_PARALLEL_SIZE", "WEFT_MODEL_PARALLEL_SIZE"}) {
    // An earlier job of this process may have set these variables, so they are emptied.
    if (!mesh && !variable(name).empty()) variables.push_back(fmt::format("{}=", name));
  }
  if (mesh) {
    const auto size = [&](const char* axis) {
      return mesh->has_axis(axis) ? mesh->axis_size(axis) : 1;
    };
    variables.push_back(fmt::format("WEFT_MESH_SHAPE={}", fmt::join(mesh->shape(), ",")));
    variables.push_back(fmt::format("WEFT_DATA_PARALLEL_SIZE={}", size("data")));
    variables.push_back(fmt::format("WEFT_MODEL_PARALLEL_SIZE={}", size("model")));
  }
  return variables;
}

void set_variables(const std::vector<std::string>& variables) {
  for (const std::string& text : variables) {
    const auto equals = text.find('=');
    const std::string name = text.substr(0, equals);
    const std::string value = text.substr(equals + 1);
    if (variable(name.c_str()) != value) ::setenv(name.c_str(), value.c_str(), 1);
  }
}

std::vector<std::string> to_variables(const WorkerEnvironment& environment, DeviceKind device,
                                      const std::optional<Mesh>& mesh) {
  std::vector<std::string> variables =
      to_variables(WorkerPlace{.job_id = environment.job_id,
                               .num_processes = environment.num_processes,
                               .process_index = environment.process_index,
                               .device = device},
                   mesh);
  variables.insert(
      variables.end(),
      {"WEFT_JOB_TOKEN=" + environment.token,
       "WEFT_COORDINATOR_ADDRESS=" + environment.coordinator_address,
       "WEFT_JOB_FOLDER=" + environment.job_folder, "WEFT_MEMORY_ID=" + environment.memory_id,
       "WEFT_LOOP=" + environment.loop, "WEFT_LOOP_OBJECT=" + environment.loop_object,
       "WEFT_LOOP_BUILD=" + environment.loop_build, "WEFT_ACTOR_SYSTEM=" + environment.actors});
  if (environment.cpus > 0 && variable("OMP_NUM_THREADS").empty()) {
    variables.push_back(fmt::format("OMP_NUM_THREADS={}", environment.cpus));
  }
  if (environment.tls.wanted()) {
    variables.push_back("WEFT_TLS_CERTIFICATE=" + environment.tls.certificate);
    variables.push_back("WEFT_TLS_KEY=" + environment.tls.key);
    variables.push_back("WEFT_TLS_CA=" + environment.tls.ca);
  }
  if (environment.place.count > 1) {
    const auto more = worker_place_variables(environment.place, environment.secret_path());
    variables.insert(variables.end(), more.begin(), more.end());
  } else if (!variable("WEFT_HOSTS").empty()) {
    variables.push_back("WEFT_HOSTS=1");  // the job has one host; an actor system has the hosts
  }
  return variables;
}

std::string socket_path(const std::string& coordinator_address) {
  if (!coordinator_address.starts_with(kUnixScheme)) {
    fail(Errc::invalid_argument,
         "WEFT_COORDINATOR_ADDRESS = \"{}\": expected unix:/path or tls://host:port",
         coordinator_address);
  }
  return coordinator_address.substr(kUnixScheme.size());
}

TlsAddress tls_address(const std::string& coordinator_address) {
  if (!coordinator_address.starts_with(kTlsScheme)) {
    fail(Errc::invalid_argument, "WEFT_COORDINATOR_ADDRESS = \"{}\": expected tls://host:port",
         coordinator_address);
  }
  return parse_tls_address(std::string_view(coordinator_address).substr(kTlsScheme.size()),
                           "WEFT_COORDINATOR_ADDRESS");
}

}  // namespace weft
