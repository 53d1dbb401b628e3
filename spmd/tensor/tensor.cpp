#include <weft/sharding/mesh_scope.hpp>

#include <algorithm>
#include <cstring>

#include "spmd/grad/grad.hpp"
#include "spmd/program/element.hpp"
#include "spmd/tensor/call.hpp"

namespace weft {
namespace {

std::vector<std::byte> bytes_of(double value) {
  std::vector<std::byte> bytes(sizeof(float));
  store_element(DType::f32, value, bytes.data());
  return bytes;
}

}  // namespace

const TensorType& Tensor::type() const { return node_of(*this)->type; }

std::int64_t Tensor::dim(int i) const {
  const int num_dims = shape().size();
  if (i < -num_dims || i >= num_dims) {
    fail(Errc::invalid_argument, "dim({}) of {}: it has {} dims", i, type().to_string(), num_dims);
  }
  return shape()[i < 0 ? i + num_dims : i];
}

double Tensor::item(std::source_location loc) const {
  const NodePtr& node = node_of(*this, loc);
  if (num_elements() != 1) {
    fail(Errc::invalid_argument, "item: {} has {} elements; expected one element (at {})",
         node->label(), num_elements(), file_line(loc));
  }
  const std::vector<std::byte> bytes = Trace::read(node, loc);
  const double value = load_element(node->type.dtype, bytes.data());
  if (node->type.dtype == DType::i64) {
    std::int64_t number = 0;
    std::memcpy(&number, bytes.data(), sizeof(number));
    // The largest numbers are rounded to 2^63, which can't be converted back.
    if (value >= 0x1p63 || static_cast<std::int64_t>(value) != number) {
      fail(
          Errc::invalid_argument,
          "item: {} is {}, which a double can't represent; read it by item<std::int64_t>() (at {})",
          node->label(), number, file_line(loc));
    }
  }
  return value;
}

Scalar::Scalar(double value)
    : Tensor(host_node({DType::f32, {}}, InputKind::runtime_scalar, "", bytes_of(value))),
      value_(value) {}

void Scalar::set(double value) {
  value_ = value;
  node()->storage = std::make_shared<const std::vector<std::byte>>(bytes_of(value));
  node()->trace = 0;  // recorded ops still read the earlier value
}

Scalar scalar(double value) { return Scalar(value); }

namespace {

/// Returns the mean that the loss computes. Sets `divided_at` and `kept_count` too, which is
/// possible only now, while the ops of the loss are recorded: in an eager job the recording ends
/// with the call.
LossMean mean_of(Call& call, ValueId loss, std::uint64_t trace) {
  const Program& program = call.trace().builder().program();
  LossMean mean = loss_mean(program, loss, trace);
  if (mean.sum == kNoId) {
    const OpId division = find_count(program, loss);
    if (division != kNoId) mean.divided_at = program.loc(division);
  } else if (call.trace().modes().is_eager) {
    mean.kept_count = call.result(mean.count);
  }
  return mean;
}

}  // namespace

std::vector<Tensor> grad(const Tensor& loss, std::span<const Tensor> wrt,
                         std::source_location loc) {
  Call call("grad", loc);
  if (call.trace().runtime().is_session()) {
    call.refuse(
        "a Session computes no gradients: its parameters have the values that a job publishes; "
        "train in that job's loop");
  }
  const NodePtr node = call.node(loss);
  if (!call.trace().is_differentiable(*node)) {
    call.refuse(
        "the loss {} isn't being recorded any more; take its gradient before the sync() or the "
        "compiled function that computes it",
        node->label());
  }
  std::vector<NodePtr> nodes;
  for (const Tensor& tensor : wrt) nodes.push_back(call.node(tensor));
  call.trace().record_again(node, nodes);
  const ValueId of = call.value(loss);
  std::vector<ValueId> values;
  for (const Tensor& tensor : wrt) values.push_back(call.value(tensor));
  std::vector<Tensor> grads;
  const auto custom = [&](const ForwardOp& op, ValueId cotangent) {
    return custom_cotangents(call.trace(), op, cotangent);
  };
  // The mean must be found before the backward pass appends its ops to the program.
  const auto mean = std::make_shared<const LossMean>(mean_of(call, of, node->trace));
  const OpId begin = call->program().num_ops();
  Regions& regions = call.trace().regions();
  std::vector<bool> is_used;
  const std::vector<ValueId> found =
      grad(call.trace().builder(), of, values, regions.remat.all(), custom, &is_used);
  for (std::size_t i = 0; i < found.size(); ++i) {
    grads.push_back(call.result(found[i]));
    if (!nodes[i]->is_state()) continue;
    grads.back().node()->gradient =
        std::make_shared<const GradientOf>(GradientOf{nodes[i], is_used[i], mean});
  }
  regions.shard_maps.note({begin, call->program().num_ops(), call->manual(of).varies, loc});
  return grads;
}

void mark_sharding(const Tensor& tensor, const Mesh& mesh, const PartitionSpec& spec,
                   std::source_location loc) {
  Call call("mark_sharding", loc);
  const NodePtr node = call.node(tensor);
  const std::string what = fmt::format("mark_sharding({}) at {}", node->label(), file_line(loc));
  call.expect_mesh(mesh);
  const Sharding sharding = Sharding::from_spec(mesh, spec, tensor.shape(), what);
  if (const auto* buffer = std::get_if<BufferPtr>(&node->storage)) {
    const Sharding& present = (*buffer)->sharding();
    if (tensor.num_elements() > 1 && !present.same_layout(sharding)) {
      call.refuse("{} is already on the chips with sharding {}; mark it before its first sync",
                  node->label(), present.to_string(mesh, tensor.shape().size()));
    }
  } else if (node->is_local()) {
    if (!node->marked->same_layout(sharding)) {
      call.refuse(
          "{} was made from each worker's rows (to_device_local at {}) with sharding {}: pass the "
          "new sharding to that call",
          node->label(), file_line(node->loc),
          node->marked->to_string(mesh, tensor.shape().size()));
    }
  } else if (node->is_off_chips()) {
    if (!node->is_state()) call.expect_even(*node, mesh, sharding);
    call.trace().mark(*node, sharding);
  } else {
    call.trace().assign(node, call->sharding_constraint(call.value(tensor), sharding));
  }
}

MeshScope::MeshScope(const Mesh& mesh, std::source_location loc) {
  Call("MeshScope", loc).expect_mesh(mesh);
}

void mark_sharding(const Tensor& tensor, const PartitionSpec& spec, std::source_location loc) {
  const Mesh* mesh = Trace::current(loc).runtime().mesh();
  if (mesh == nullptr) {
    fail(Errc::unavailable,
         "mark_sharding: the job has no mesh (backend.backend = \"none\"): use backend \"spmd\", "
         "or remove this call (at {})",
         file_line(loc));
  }
  mark_sharding(tensor, *mesh, spec, loc);
}

void sync(std::source_location loc) {
  Trace& trace = Trace::current(loc);
  trace.run({.function = "sync", .loc = loc, .ends_step = true});
  trace.end_step();
}

}  // namespace weft
