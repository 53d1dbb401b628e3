#include "inspect/snapshot/process_file.hpp"

#include <fstream>

#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

#include "data/files/file_bytes.hpp"
#include "inspect/snapshot/json_text.hpp"

namespace weft {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ThreadState, tid, name, state, wchan, core_ns)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ProcessState, host, pid, state, wchan, tracer,
                                                tracer_name, frozen_by, child, core_ns, oom_kills,
                                                threads)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StackFrame, function, file, line, object)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ThreadStack, tid, frames, why_not)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(FutexWait, mutex_owner, owner_is_gone, joins)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FileLockWait, file, holder, holder_name)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ThreadSight, stack, futex, file_lock)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ProcessSight, host, pid, threads)

namespace {

using Json = nlohmann::json;

constexpr std::size_t kProcessesBytesMax = std::size_t{64} << 20;

}  // namespace

std::string processes_text(const Snapshot& snapshot) {
  return json_text(Json{{"schema", "weft.processes/1"},
                        {"at_ns", snapshot.at_ns},
                        {"processes", snapshot.processes},
                        {"sights", snapshot.sights}});
}

void write_processes(const std::string& path, const Snapshot& snapshot) {
  std::ofstream file(path);
  file << processes_text(snapshot);
  if (!file.flush()) fail(Errc::io, "can't write {}", path);
}

void read_processes(const std::string& path, Snapshot& snapshot) {
  const std::string text = read_file_text(path, kProcessesBytesMax);
  try {
    const Json json = Json::parse(text);
    json.at("at_ns").get_to(snapshot.at_ns);
    json.at("processes").get_to(snapshot.processes);
    json.at("sights").get_to(snapshot.sights);
  } catch (const nlohmann::json::exception& e) {
    fail(Errc::corrupt, "{}: {}", path, e.what());
  }
}

}  // namespace weft
