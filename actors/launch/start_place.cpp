#include "actors/launch/start_place.hpp"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <string>
#include <string_view>

#include <weft/job/tls.hpp>
#include <weft/tensor/error.hpp>

namespace weft {
namespace {

constexpr std::size_t kJobNameBytesMax = 100;
constexpr const char* kCompletionIndex = "JOB_COMPLETION_INDEX";

std::atomic<bool> actors_have_the_hosts{false};

std::string text_of(const char* value) { return value == nullptr ? "" : value; }

bool is_name_byte(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
}

int count_of(const HostVariables& own, const std::optional<ForeignLaunch>& launch) {
  if (!launch) return own.hosts.value_or(1);
  if (!own.hosts) return launch->hosts;
  // WEFT_HOSTS may also count each process as a host, even if several are on one machine.
  if (*own.hosts == launch->hosts || *own.hosts == launch->size) return *own.hosts;
  fail(
      Errc::invalid_argument,
      "WEFT_HOSTS = {}, but {} has started {} processes on {} hosts ({}): unset WEFT_HOSTS, or set "
      "WEFT_IGNORE_LAUNCHER=1 if {} has not started this job",
      *own.hosts, launch->launcher, launch->size, launch->hosts, launch->says_counts(),
      launch->launcher);
}

/// The index that the launcher or Kubernetes gives, and the variable from which it is, as text.
struct GivenIndex {
  int index;
  std::string says;
};

std::optional<GivenIndex> given_index(int count, const std::optional<ForeignLaunch>& launch,
                                      const VariableLookup& variable) {
  if (launch) {
    if (count == launch->size) return GivenIndex{launch->rank, launch->says_rank};
    return GivenIndex{launch->host, launch->says_host};
  }
  const std::string text = text_of(variable(kCompletionIndex));
  if (text.empty()) return {};
  return GivenIndex{parse_variable(kCompletionIndex, text, 0, count - 1),
                    fmt::format("{} = {}", kCompletionIndex, text)};
}

int index_of(int count, const HostVariables& own, const std::optional<GivenIndex>& given) {
  if (own.index && given && *own.index != given->index) {
    fail(Errc::invalid_argument,
         "WEFT_HOST_INDEX = {}, but {} makes this host number {}: unset one of the two variables",
         *own.index, given->says, given->index);
  }
  if (own.index) return *own.index;
  if (given) return given->index;
  fail(Errc::invalid_argument,
       "WEFT_HOSTS = {} without WEFT_HOST_INDEX: set it to 0 on one host, which runs the trainer, "
       "and to 1 to {} on the others",
       count, count - 1);
}

/// Returns the address in torchrun's variables; "" if they aren't set or torchrun itself listens
/// there.
std::string trainer_of_torchrun(const VariableLookup& variable) {
  const std::string host = text_of(variable("MASTER_ADDR"));
  const std::string port = text_of(variable("MASTER_PORT"));
  if (host.empty() || port.empty()) return {};
  if (text_of(variable("TORCHELASTIC_USE_AGENT_STORE")) == "True") return {};
  return to_string(TlsAddress{
      .host = host,
      .port = static_cast<std::uint16_t>(parse_variable("MASTER_PORT", port, 1, 65535))});
}

std::string meeting_of(int count, const std::optional<ForeignLaunch>& launch,
                       const VariableLookup& variable) {
  std::string name = text_of(variable("WEFT_JOB"));
  if (!name.empty()) {
    if (name.size() <= kJobNameBytesMax && std::ranges::all_of(name, is_name_byte)) return name;
    fail(Errc::invalid_argument,
         "WEFT_JOB = \"{}\": expected at most {} letters, digits, \".\", \"_\" and \"-\", since it "
         "becomes part of a file's name",
         name, kJobNameBytesMax);
  }
  if (launch) name = launch->job;
  if (name.empty()) {
    fail(Errc::invalid_argument,
         "the job has {} hosts, but nothing tells them where host 0 listens: set WEFT_JOB on all "
         "hosts to a name that no other job has, and they find each other by a file of this name "
         "in run.storage_path; or set WEFT_TRAINER to an address and port of host 0, such as "
         "10.0.0.1:4711, and WEFT_SECRET_FILE to a file with a secret that only this job's "
         "processes know",
         count);
  }
  std::ranges::replace_if(
      name, [](char c) { return !is_name_byte(c); }, '_');
  return name.substr(0, kJobNameBytesMax);
}

}  // namespace

HostPlace start_place(const std::optional<ForeignLaunch>& launch, const VariableLookup& variable) {
  const HostVariables own = read_host_variables(variable);
  if (!launch && !own.hosts && own.index) {
    fail(Errc::invalid_argument,
         "WEFT_HOST_INDEX = {} without WEFT_HOSTS: set WEFT_HOSTS to the number of hosts",
         *own.index);
  }
  HostPlace place{.count = count_of(own, launch)};
  if (place.count == 1) return {};
  place.index = index_of(place.count, own, given_index(place.count, launch, variable));
  place.trainer = own.trainer;
  if (place.trainer.empty() && !own.secret_file.empty()) {
    place.trainer = trainer_of_torchrun(variable);
  }
  if (place.trainer.empty() && own.secret_file.empty()) {
    place.meeting = meeting_of(place.count, launch, variable);
    place.meeting_folder = text_of(variable("WEFT_RENDEZVOUS"));
    return place;
  }
  if (place.trainer.empty()) {
    fail(Errc::invalid_argument,
         "WEFT_SECRET_FILE = \"{}\" without WEFT_TRAINER: set it on all hosts to the address and "
         "port at which host 0 listens, such as 10.0.0.1:4711",
         own.secret_file);
  }
  parse_tls_address(place.trainer, "WEFT_TRAINER");
  if (own.secret_file.empty()) {
    fail(Errc::invalid_argument,
         "WEFT_TRAINER = \"{}\" without WEFT_SECRET_FILE: set it on all hosts to a file with a "
         "secret that only this job's processes know",
         place.trainer);
  }
  place.secret = read_secret(own.secret_file);
  return place;
}

void give_hosts_to_actors(bool are_given) { actors_have_the_hosts.store(are_given); }
bool have_actors_the_hosts() { return actors_have_the_hosts.load(); }

}  // namespace weft
