#include <weft/train/host_values.hpp>

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

void require_mesh(const TrainContext& ctx, const char* function) {
  if (ctx.mesh() != nullptr) return;
  fail(Errc::unavailable,
       "{}: the job has no mesh (backend.backend = Backend::none), but its {} workers exchange "
       "values through the chips of a mesh: set backend.backend = Backend::spmd",
       function, ctx.world_size());
}

}  // namespace

/// Broadcasts `value` in two parts. First the chips of all workers learn which worker sends it and
/// how many bytes it has.
Config broadcast(TrainContext& ctx, const Config& value, int root, std::source_location where) {
  if (root < 0 || root >= ctx.world_size()) {
    fail(Errc::invalid_argument, "broadcast: root = {}: expected a worker, 0 to {}", root,
         ctx.world_size() - 1);
  }
  if (ctx.world_size() == 1) return value;
  require_mesh(ctx, "broadcast");
  std::vector<std::uint8_t> sent;
  if (ctx.world_rank() == root) Config::to_cbor(value, sent);
  std::vector<std::uint8_t> received;
  const auto exchange = [&](Chip& chip) {
    const bool sends = ctx.world_rank() == root && chip.local_index() == 0;
    enum : std::size_t { size, sender, greatest_root, least_root };
    std::array<std::int64_t, 4> told{sends ? std::ssize(sent) : 0, sends ? chip.group_index() : 0,
                                     root, -root};
    chip.all_reduce(told, {}, ReduceKind::max, where);
    if (told[greatest_root] != -told[least_root]) {
      fail(Errc::invalid_argument,
           "broadcast: root = {} in this worker, {} to {} in others: expected the same root in "
           "all workers",
           root, -told[least_root], told[greatest_root]);
    }
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(told[size]));
    if (sends) bytes = sent;
    chip.broadcast(bytes, static_cast<int>(told[sender]), {}, where);
    if (chip.local_index() == 0) received = std::move(bytes);
  };
  ctx.on_each_chip(exchange, where);
  return Config::from_cbor(received);
}

void barrier(TrainContext& ctx, std::source_location where) {
  if (ctx.world_size() == 1) return;
  require_mesh(ctx, "barrier");
  ctx.on_each_chip([&](Chip& chip) { chip.barrier({}, where); }, where);
}

}  // namespace weft
