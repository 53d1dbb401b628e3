#pragma once
/// ActorContext: an actor's name, configuration and stop token, and its access to the system.

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <weft/actor/actor_mesh.hpp>
#include <weft/actor/experience_writer.hpp>
#include <weft/actor/loan.hpp>
#include <weft/actor/parameters.hpp>
#include <weft/actor/pipe.hpp>

namespace weft {

template <typename T>
class ActorType;

namespace detail {
/// Returns the actors of the mesh named `mesh`. Throws not_found, with the names of all meshes, or
/// invalid_argument if its actors are of another type.
std::vector<ActorHandle> find_actors(const std::shared_ptr<ActorHost>& process,
                                     std::string_view mesh, std::string_view type);
}  // namespace detail

/// The context of one actor, given to its constructor: `explicit Rollout(ActorContext& ctx)`. It
/// lives as long as the actor. Thread-safe.
class ActorContext {
 public:
  struct Facts {
    std::string mesh{};
    int index = 0;
    int count = 1;
    std::uint32_t incarnation = 1;
    std::uint64_t seed = 0;
    nlohmann::json config{};
    std::string job{};  ///< the id of the job in SpawnOptions::lives_with; "": no job
  };

  ActorContext(Facts facts, std::stop_token stop, std::shared_ptr<detail::ActorHost> process)
      : facts_(std::move(facts)), stop_(std::move(stop)), process_(std::move(process)) {}

  const std::string& mesh() const { return facts_.mesh; }  ///< the name of the actor's mesh
  int index() const { return facts_.index; }               ///< the actor's index in the mesh
  int count() const { return facts_.count; }               ///< the number of actors in the mesh
  /// Returns 1 for a new actor, and one more after each restart.
  std::uint32_t incarnation() const { return facts_.incarnation; }
  /// Returns a number that depends only on the system's seed, the mesh, index() and incarnation().
  std::uint64_t seed() const { return facts_.seed; }
  const nlohmann::json& config() const { return facts_.config; }  ///< SpawnOptions::config
  /// Returns the token that asks the actor to stop. work() and endpoints that run long should check
  /// it.
  const std::stop_token& stop() const { return stop_; }

  /// Returns the mesh named `mesh`. Throws not_found, with the names of all meshes, or
  /// invalid_argument if its actors are of another type.
  template <typename T>
  ActorMesh<T> find(const ActorType<T>& type, std::string_view mesh) const {
    std::vector<ActorRef<T>> actors;
    for (detail::ActorHandle& actor : detail::find_actors(process_, mesh, type.name())) {
      actors.emplace_back(std::move(actor));
    }
    return ActorMesh<T>(std::move(actors));
  }
  /// Returns the parameters that the job of SpawnOptions::lives_with publishes under `name`. A wait
  /// for a version also ends when this actor is asked to stop. Throws invalid_argument if the mesh
  /// has no job or the name is malformed.
  Parameters parameters(std::string_view name) const;
  /// Returns a writer of rows for the dataset experience(ctx, name) of the same job. Waits
  /// and errors are the same as with parameters().
  ExperienceWriter experience(std::string_view name) const;
  /// Makes a pipe between this actor and another actor or program. Throws invalid_argument or
  /// no_space.
  template <Message T>
  Pipe<T> pipe(const PipeOptions& options = {}) const {
    return detail::make_pipe_of<T>(process_, options);
  }
  /// Returns a tensor in shared memory: fill it, then send it without a copy. Throws no_space.
  LoanedTensor loan(const TensorType& type) const { return detail::loan(process_, type); }

 private:
  Facts facts_;
  std::stop_token stop_;
  std::shared_ptr<detail::ActorHost> process_;
};

}  // namespace weft
