#pragma once
/// Session: runs a module outside of a training loop, for example in an actor, with the values of a
/// version of Parameters.
///
///   struct Policy {
///     explicit Policy(weft::ActorContext& ctx) : parameters(ctx.parameters("policy")) {}
///     std::vector<float> act(const std::vector<float>& state) {
///       session.bind(net, parameters.newest());  // copies the values of a new version
///       return net(weft::to_device(state, {1, 4})).to_vector();
///     }
///     weft::Session session;
///     Net net;
///     weft::Parameters parameters;
///   };

#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>

#include <weft/actor/parameters.hpp>
#include <weft/nn/module.hpp>

namespace weft {

struct SessionOptions {
  /// Address space for the chip, in bytes. Memory is taken only as it is used. One half is for
  /// parameters, inputs and outputs, the other half for intermediate values.
  std::size_t memory_max = std::size_t{8} << 30;
};

/// A Session's counts since it was made.
struct SessionCounts {
  std::uint64_t programs = 0;      ///< compiled programs; one for each shape of the inputs
  std::uint64_t runs = 0;          ///< runs of programs
  std::uint64_t copied = 0;        ///< parameters and buffers that bind() has copied
  std::uint64_t memory_bytes = 0;  ///< bytes that the chip's tensors have taken so far
};

/// A chip for one thread, without a mesh or a job. The thread that first calls bind() owns the
/// Session. Ops run when one of their results is read. Each new sequence of ops and shapes is
/// compiled once; new values alone need no new program. A thread may have several Sessions, for
/// example if actors share it; they don't affect each other.
class Session {
 public:
  /// Takes no memory yet. Throws invalid_argument unless `memory_max` is from 1 MiB to 1 TiB.
  explicit Session(const SessionOptions& options = {});
  /// Any thread may destroy a Session. After that, tensors that its ops returned can't be read.
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  /// Copies the values of `view` to the module's parameters and buffers of the same names, unless
  /// the module has this version already; the view isn't kept. The thread's tensor ops then run on
  /// this chip until another Session is bound. Results that were recorded but not read are computed
  /// first, with the old values. Several modules may be bound; each belongs to the Session that
  /// bound it last.
  ///
  /// A bound module can't be trained: grad() throws, and so do layers that update their buffers in
  /// training mode, so call Module::eval() first. Throws not_found if the version lacks a name;
  /// invalid_argument for an empty view, another type, a thread of a training loop, or another
  /// thread than that of the first bind(); and no_space. If it throws, the module is unchanged.
  void bind(const Module& module, const ParameterView& view,
            std::source_location where = std::source_location::current());

  SessionCounts counts() const;

 private:
  struct State;
  SessionOptions options_;
  std::shared_ptr<State> state_;  // null before the first bind()
};

}  // namespace weft
