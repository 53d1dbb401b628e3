#include "actors/user/actor_host.hpp"

#include <weft/tensor/error.hpp>

namespace weft::detail {

ProcessPlace ActorHost::place() const {
  fail(Errc::invalid_argument,
       "pipes lie in the shared memory of an ActorSystem, and these actors have none");
}

void ActorHost::check_wait(std::string_view) const {}

}  // namespace weft::detail
