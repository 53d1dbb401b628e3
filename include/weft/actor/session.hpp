#pragma once
/// Session: runs a module outside of a training loop, for example in an actor, with the values of
/// one version of Parameters.
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
  /// Address space for the chip's memory, in bytes. Only what is used takes memory. Half of it has
  /// room for parameters, inputs and outputs, the other half for values in between.
  std::size_t memory_max = std::size_t{8} << 30;
};

/// Counts since a Session was made.
struct SessionCounts {
  std::uint64_t programs = 0;      ///< compiled; one for each shape of the inputs
  std::uint64_t runs = 0;          ///< of programs
  std::uint64_t copied = 0;        ///< parameters and buffers that bind() copied
  std::uint64_t memory_bytes = 0;  ///< memory that the chip's tensors have taken so far
};

/// A chip for one thread, without a mesh and without a job. The thread that calls bind() first owns
/// the Session. Ops run on it when one of their results is read. A program is compiled for each new
/// sequence of ops and shapes; new values alone need no new program. Sessions of one thread, such
/// as those of actors that share it, don't disturb each other.
class Session {
 public:
  /// Throws invalid_argument unless `memory_max` is from 1 MiB to 1 TiB. Takes no memory yet.
  explicit Session(const SessionOptions& options = {});
  /// Any thread may destroy a Session. Tensors that its ops returned can't be read any more.
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  /// Gives the parameters and buffers of the module the values of the version, by name, and makes
  /// the thread's tensor ops run on this chip until another Session is bound. Copies them unless
  /// the module has this version already, and doesn't hold the view. Results that were recorded
  /// before and not read are computed first, with the old values. A module may be bound beside
  /// others. A module belongs to the Session that bound it last.
  ///
  /// Such a module can't be trained: grad() throws, and so does a layer that assigns one of its
  /// buffers, until Module::eval(). Throws not_found if the version lacks a name; invalid_argument
  /// for an empty view, another type, a thread of a training loop, or another thread than that of
  /// the first bind(); and no_space if there is no memory. The module is unchanged then.
  void bind(const Module& module, const ParameterView& view,
            std::source_location where = std::source_location::current());

  SessionCounts counts() const;

 private:
  struct State;
  SessionOptions options_;
  std::shared_ptr<State> state_;  // null before the first bind()
};

}  // namespace weft
