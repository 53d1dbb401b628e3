#include "tests/support/net_machines.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include "tests/support/app_process.hpp"

namespace weft::testing {
namespace {

/// Runs a shell script. Returns "", or the script's output if it fails.
std::string run(const std::string& script) {
  AppProcess shell({"/bin/sh", "-ec", "PATH=$PATH:/usr/sbin:/sbin\n" + script});
  const int code = shell.wait();
  if (code == 0) return {};
  return shell.output().empty() ? fmt::format("exit code {}", code) : shell.output();
}

}  // namespace

std::vector<std::string> in_own_namespaces(const std::string& name) {
  return {"/usr/bin/unshare",
          "--mount",
          "--pid",
          "--fork",
          "--kill-child",
          "--mount-proc",
          "--ipc",
          "--uts",
          "/bin/sh",
          "-c",
          fmt::format("mount -t tmpfs tmpfs /dev/shm && hostname {} && exec \"$0\" \"$@\"", name)};
}

NetMachines::NetMachines(int count) : count_(count), id_(fmt::format("weft{}", ::getpid())) {
  if (::geteuid() != 0) {
    why_not_ = "namespaces of networks need root";
    return;
  }
  std::string script = fmt::format(
      "command -v nsenter > /dev/null || {{ echo there is no nsenter; exit 1; }}\n"
      "ip netns add {0}\nip -n {0} link add br0 type bridge\nip -n {0} link set br0 up\n",
      id_);
  for (int i = 0; i < count; ++i) {
    script += fmt::format(
        "ip netns add {0}\nip -n {0} link set lo up\n"
        "ip link add eth0 netns {0} type veth peer name p{1} netns {2}\n"
        "ip -n {0} addr add {3}/24 dev eth0\nip -n {0} link set eth0 up\n"
        "ip -n {2} link set p{1} master br0 up\n"
        "nsenter --net=/run/netns/{0} unshare --mount --pid --fork --ipc --uts true\n",
        space(i), i, id_, address(i));
  }
  why_not_ = run(script);
}

NetMachines::~NetMachines() {
  if (::geteuid() != 0) return;
  std::string script;
  for (int i = 0; i < count_; ++i) script += fmt::format("ip netns del {} || true\n", space(i));
  run(script + fmt::format("ip netns del {} || true\n", id_));
}

std::vector<std::string> NetMachines::prefix(int machine) const {
  std::vector<std::string> words{"/usr/bin/nsenter",
                                 fmt::format("--net=/run/netns/{}", space(machine))};
  const auto own = in_own_namespaces(fmt::format("machine{}", machine));
  words.insert(words.end(), own.begin(), own.end());
  return words;
}

std::string NetMachines::address(int machine) const {
  return fmt::format("10.79.0.{}", machine + 1);
}

void NetMachines::set_link(int machine, bool up) {
  const std::string failure =
      run(fmt::format("ip -n {} link set p{} {}", id_, machine, up ? "up" : "down"));
  if (!failure.empty()) throw std::runtime_error(failure);
}

bool NetMachines::limit(int machine, int mbit) {
  return run(fmt::format("tc -n {} qdisc replace dev eth0 root tbf rate {}mbit burst 256kb "
                         "latency 50ms",
                         space(machine), mbit))
      .empty();
}

std::string NetMachines::space(int machine) const { return fmt::format("{}-{}", id_, machine); }

}  // namespace weft::testing
