#include "tests/embed/hosts/clashing_caf.hpp"

namespace caf {

namespace version {
enum class abi_token {};
}  // namespace version

class actor_system_config {
 public:
  actor_system_config();
  virtual ~actor_system_config();
  int half = 0;
};

class actor_system {
 public:
  explicit actor_system(actor_system_config& config);                 // as in CAF 0.17
  actor_system(actor_system_config& config, version::abi_token abi);  // as in CAF 1.x
  virtual ~actor_system();
  virtual int answer() const;

 private:
  int answer_ = 0;
};

static int systems = 0;

actor_system_config::actor_system_config() : half(21) {}
actor_system_config::~actor_system_config() = default;
actor_system::actor_system(actor_system_config& config) : answer_(2 * config.half) { ++systems; }
actor_system::actor_system(actor_system_config& config, version::abi_token)
    : actor_system(config) {}
actor_system::~actor_system() = default;
int actor_system::answer() const { return answer_; }

}  // namespace caf

int clash_answer() {
  caf::actor_system_config config;
  const caf::actor_system system{config};
  return system.answer();
}

int clash_systems() { return caf::systems; }
