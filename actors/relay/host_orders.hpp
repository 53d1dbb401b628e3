#pragma once
/// The orders and news that the hosts of an actor system send each other. Each is the body of a
/// frame of the kind `order`, whose heading names its HostOp.

#include <cstdint>
#include <string>
#include <vector>

#include <weft/message/aggregate.hpp>
#include <weft/message/containers.hpp>

#include "actors/protocol/protocol.hpp"
#include "actors/table/table_change.hpp"

namespace weft {

enum class HostOp : std::uint32_t {
  // From an agent to host 0.
  join = 1,    ///< JoinNews: the first frame of an agent
  ready = 2,   ///< all links of the host are up
  ended = 3,   ///< EndedNews
  buried = 4,  ///< PeerOrder: the host has nothing of a dead process any more
  cut = 5,     ///< LostHost: the link to another agent is lost
  counts = 6,  ///< CountNews
  hung = 7,    ///< HungNews
  // From host 0 to an agent, which counts the orders that it has obeyed.
  welcome = 16,  ///< WelcomeOrder
  peer = 17,     ///< PeerOrder: a process has been added, has joined, or has died
  change = 18,   ///< TableChange
  kick = 19,     ///< waiting processes shall read the actor table again
  start = 20,    ///< StartOrder
  kill = 21,     ///< KillOrder
  gone = 22,     ///< LostHost: the named host is lost
  end = 23,      ///< the system has ended
};

struct JoinNews {
  std::string build{};
  std::string machine{};
  std::int32_t pid = 0;
  std::int32_t host_count = 0;
  std::string address{};  ///< address at which agents with higher host numbers reach this agent
};

struct WelcomeOrder {
  std::uint64_t key = 0;  ///< ActorTableHead::key
  std::uint32_t threads = 0;
  std::uint64_t heap_bytes = 0;
  double call_timeout_s = 0;
  double host_timeout_s = 0;
  std::vector<std::string> addresses{};  ///< by host; "" for host 0
};

struct PeerOrder {
  std::uint32_t slot = 0;
  std::uint32_t incarnation = 0;
  std::uint8_t state = 0;  ///< a PeerState
  std::uint8_t role = 0;   ///< a PeerRole
  std::uint32_t host = 0;
  std::uint32_t ports = 0;
};

struct StartOrder {
  std::int32_t number = 0;  ///< number among the processes that the keeper has started
  std::uint32_t slot = 0;
  std::uint32_t incarnation = 0;
  std::uint32_t ports = 0;
};

struct KillOrder {
  std::int32_t number = 0;
};

struct EndedNews {
  ProcessEnded ended{};
  std::string why{};  ///< why the process couldn't be started; "" if it was started and has ended
};

struct LostHost {
  std::int32_t host = 0;
  std::string why{};
};

/// Reports a function of an actor that has run longer than Supervision::hang_timeout_s.
struct HungNews {
  std::uint32_t actor = 0;  ///< an ActorNumber
  std::uint32_t slot = 0;   ///< slot of the actor's process
  std::uint32_t incarnation = 0;
};

/// A host's counts since its last CountNews.
struct CountNews {
  std::uint64_t copied_tensors = 0;
  std::uint64_t lost_tells = 0;
};

/// Returns the bytes of an order.
template <typename Order>
MessageWriter written(const Order& order) {
  MessageWriter out;
  MessageCodec<Order>::put(out, order);
  return out;
}
/// Returns the order that the bytes contain. Throws corrupt.
template <typename Order>
Order read_order(std::span<const std::byte> body) {
  MessageReader in(body);
  Order order = MessageCodec<Order>::get(in);
  in.finish();
  return order;
}

}  // namespace weft
