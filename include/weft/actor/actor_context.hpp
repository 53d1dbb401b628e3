#pragma once
/// ActorContext: what an actor knows of itself and its system.

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
/// Returns the actors of a mesh. Throws not_found with the names that exist, or invalid_argument if
/// its actors are of another type.
std::vector<ActorHandle> find_actors(const std::shared_ptr<ActorHost>& process,
                                     std::string_view mesh, std::string_view type);
}  // namespace detail

/// Given to the constructor of an actor, if that takes one: `explicit Rollout(ActorContext& ctx)`.
/// It lives as long as the actor. Thread-safe.
class ActorContext {
 public:
  struct Facts {
    std::string mesh{};
    int index = 0;
    int count = 1;
    std::uint32_t incarnation = 1;
    std::uint64_t seed = 0;
    nlohmann::json config{};
    std::string job{};  ///< the id of SpawnOptions::lives_with; "": none
  };

  ActorContext(Facts facts, std::stop_token stop, std::shared_ptr<detail::ActorHost> process)
      : facts_(std::move(facts)), stop_(std::move(stop)), process_(std::move(process)) {}

  const std::string& mesh() const { return facts_.mesh; }  ///< the name of its mesh
  int index() const { return facts_.index; }               ///< in its mesh
  int count() const { return facts_.count; }               ///< the actors of its mesh
  /// 1, and one more after each restart.
  std::uint32_t incarnation() const { return facts_.incarnation; }
  /// A number that depends on the system's seed, the mesh, the index and the incarnation.
  std::uint64_t seed() const { return facts_.seed; }
  const nlohmann::json& config() const { return facts_.config; }  ///< SpawnOptions::config
  /// Requests a stop when the actor is to end. work() and long endpoints should look at it.
  const std::stop_token& stop() const { return stop_; }

  /// Returns the mesh of this name. Throws not_found with the names that exist, or
  /// invalid_argument if its actors are of another type.
  template <typename T>
  ActorMesh<T> find(const ActorType<T>& type, std::string_view mesh) const {
    std::vector<ActorRef<T>> actors;
    for (detail::ActorHandle& actor : detail::find_actors(process_, mesh, type.name())) {
      actors.emplace_back(std::move(actor));
    }
    return ActorMesh<T>(std::move(actors));
  }
  /// Returns what the job of SpawnOptions::lives_with publishes under a name. A wait for a version
  /// also ends when this actor is to stop. Throws invalid_argument if the mesh has no job, or for a
  /// name that can't be.
  Parameters parameters(std::string_view name) const;
  /// Returns a writer of rows for that job's loop, under the name of experience(). Waits and errors
  /// are those of parameters().
  ExperienceWriter experience(std::string_view name) const;
  /// Makes a stream of values to or from another actor or program. Throws invalid_argument or
  /// no_space.
  template <Message T>
  Pipe<T> pipe(const PipeOptions& options = {}) const {
    return detail::make_pipe_of<T>(process_, options);
  }
  /// Returns a tensor in shared memory, to be filled and sent without a copy. Throws no_space.
  LoanedTensor loan(const TensorType& type) const { return detail::loan(process_, type); }

 private:
  Facts facts_;
  std::stop_token stop_;
  std::shared_ptr<detail::ActorHost> process_;
};

}  // namespace weft
