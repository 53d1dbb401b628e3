#include "inspect/hosts/host_list.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

#include "data/files/file_bytes.hpp"
#include "data/files/utf8.hpp"
#include "inspect/snapshot/json_text.hpp"
#include "transport/blackbox/box_clock.hpp"
#include "transport/job/job_folder.hpp"
#include "transport/job/private_file.hpp"
#include "transport/memory/namespaces.hpp"

namespace weft {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kBytesMax = std::size_t{16} << 20;
constexpr std::size_t kHostsMax = 4096;
/// The file that contains the namespace of a Kubernetes pod.
constexpr const char* kPodNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

std::string path_in(const std::string& run_dir) { return run_dir + "/hosts.json"; }

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

std::vector<std::string> words_of_pattern(const std::string& pattern, const std::string& machine) {
  if (pattern.find("{host}") == std::string::npos) {
    fail(Errc::invalid_argument,
         "{} = \"{}\": expected the words before a command, with {{host}} in place of the host's "
         "name, such as \"ssh -p 2222 {{host}}\"",
         kInspectViaVariable, pattern);
  }
  std::vector<std::string> words;
  std::istringstream in(pattern);
  for (std::string word; in >> word;) words.push_back(replaced(word, "{host}", machine));
  return words;
}

/// Throws if a command might take the name for an option.
void require_machine(const std::string& machine) {
  const bool is_name = std::ranges::all_of(machine, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
  });
  if (is_name && !machine.empty() && machine[0] != '-') return;
  fail(Errc::invalid_argument,
       "machine \"{}\": expected a host name of letters, digits, '.', '-' and '_'",
       visible(machine));
}

/// Returns the text of the file. Throws if other users could have written it, because its words are
/// run as commands.
std::optional<std::string> read_own(const std::string& path) {
  try {
    return find_own_file(path, S_IWGRP | S_IWOTH, kBytesMax);
  } catch (const Error& error) {
    fail(Errc::invalid_argument,
         "{}; its commands are not run: chmod 600 it if you wrote it, else remove it",
         error.what());
  }
}

Json to_json(const HostEntry& entry) {
  return {{"machine", entry.where.machine},
          {"boot_id", entry.where.boot_id},
          {"pid_namespace", entry.where.pid_namespace},
          {"memory_id", entry.where.memory_id},
          {"via", entry.via}};
}

HostEntry to_entry(const Json& json) {
  HostEntry entry{.where = {.machine = json.at("machine"),
                            .boot_id = json.at("boot_id"),
                            .pid_namespace = json.at("pid_namespace"),
                            .memory_id = json.at("memory_id")},
                  .via = json.at("via")};
  const std::string& id = entry.where.memory_id;
  if (!id.empty() && !is_job_id(id)) {
    fail(Errc::corrupt, "memory_id = \"{}\": expected {} hex digits", id, kJobIdLength);
  }
  return entry;
}

}  // namespace

HostWhere where_this_is(const std::string& memory_id) {
  const char* const node = std::getenv("SLURMD_NODENAME");
  return {.machine = node != nullptr && *node != '\0' ? node : machine_name(),
          .boot_id = read_boot_id(),
          .pid_namespace = namespace_of_this_process("pid"),
          .memory_id = memory_id};
}

bool HostEntry::is_here() const {
  return where.boot_id == read_boot_id() && where.pid_namespace == namespace_of_this_process("pid");
}

void HostList::write(const std::string& run_dir) const {
  Json json{{"schema", "weft.hosts/1"}, {"job", job}, {"hosts", Json::array()}};
  for (const HostEntry& host : hosts) json["hosts"].push_back(to_json(host));
  replace_private_file(path_in(run_dir), json_text(json));
}

std::optional<HostList> HostList::read(const std::string& run_dir) {
  const std::string path = path_in(run_dir);
  const std::optional<std::string> text = read_own(path);
  if (!text) return {};
  try {
    const Json json = Json::parse(*text);
    HostList list{.job = json.at("job")};
    for (const Json& host : json.at("hosts")) list.hosts.push_back(to_entry(host));
    if (list.hosts.size() > kHostsMax) {
      fail(Errc::corrupt, "{} hosts, expected at most {}", list.hosts.size(), kHostsMax);
    }
    return list;
  } catch (const std::exception& e) {
    fail(Errc::corrupt, "{}: {}", path, e.what());
  }
}

std::vector<std::string> via_of(const std::string& machine,
                                const std::function<const char*(const char*)>& variable) {
  const auto value = [&](const char* name) {
    const char* const text = variable(name);
    return std::string(text == nullptr ? "" : text);
  };
  require_machine(machine);
  if (const std::string own = value(kInspectViaVariable); !own.empty()) {
    return words_of_pattern(own, machine);
  }
  if (const std::string job = value("SLURM_JOB_ID"); !job.empty()) {
    return {"srun", "--jobid=" + job, "--overlap", "--nodes=1", "--ntasks=1", "-w", machine};
  }
  if (!value("KUBERNETES_SERVICE_HOST").empty()) {
    std::vector<std::string> words{"kubectl", "exec", "-i"};
    if (const auto space = find_file_text(kPodNamespace, 256)) {
      words.insert(words.end(), {"-n", *space});
    }
    words.insert(words.end(), {machine, "--"});
    return words;
  }
  return {"ssh", "-o", "BatchMode=yes", machine};
}

}  // namespace weft
