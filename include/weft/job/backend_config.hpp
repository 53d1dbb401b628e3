#pragma once
/// BackendConfig: the mesh of a job, and how its processes reach each other (Ray Train's
/// TorchConfig).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <weft/job/choice.hpp>
#include <weft/job/tls.hpp>
#include <weft/sharding/hybrid_mesh.hpp>

namespace weft {

/// Says how values without a sharding annotation are sharded.
enum class PartitioningMode : std::uint8_t {
  automatic,  ///< shardings are inferred from the annotated values
};
/// Returns "auto".
std::string_view to_string(PartitioningMode mode) noexcept;
/// Returns the mode of this name. Throws invalid_argument for other text.
PartitioningMode parse_partitioning_mode(std::string_view text);

/// Asks for a particular mesh instead of the one that workers, chips and topology determine.
/// make_mesh() has the rules.
struct SpmdConfig {
  std::vector<std::int64_t> mesh_shape{};  ///< a size per axis
  std::vector<std::string> axis_names{};
  /// The chip at each position of the mesh, row-major, as in Mesh. Workers get chips in order of
  /// their ids. Default: 0, 1, 2, ...
  std::vector<int> device_ids{};
  /// The mesh as chips within a host times hosts, instead of mesh_shape, axis_names and device_ids.
  /// A job on one host then runs the same plan as on `dcn` hosts, and gets bitwise the same results
  /// (docs/clusters.md).
  std::optional<HybridMesh> hybrid{};
  std::int64_t data_parallel_size = 0;
  std::int64_t model_parallel_size = 0;
  Choice<PartitioningMode> partitioning_mode = PartitioningMode::automatic;
};

/// Says whether the workers of a job share a mesh.
enum class Backend : std::uint8_t {
  none,            ///< no mesh: each worker computes alone
  spmd,            ///< one mesh of the chips of all workers
  xla = spmd,      ///< torch_xla's name for spmd
  xla_tpu = spmd,  ///< Ray Train's name for spmd
};
/// Returns "none" or "spmd".
std::string_view to_string(Backend backend) noexcept;
/// Returns the Backend of this name; "xla" and "xla_tpu" are names of spmd. Throws
/// invalid_argument, with the closest name, for other text.
Backend parse_backend(std::string_view text);

/// Says what carries tensors between the hosts of a job.
enum class Wire : std::uint8_t {
  automatic,  ///< weft chooses; today tls
  tls,        ///< TCP with TLS 1.3
  ucx,        ///< UCX over TCP, without encryption, for private networks
};
/// Returns "auto", "tls" or "ucx".
std::string_view to_string(Wire wire) noexcept;
/// Returns the Wire of this name. Throws invalid_argument for other text.
Wire parse_wire(std::string_view text);

struct BackendConfig {
  Choice<Backend> backend = Backend::spmd;
  double timeout_s = 1800;  ///< seconds for all workers to join, and for any wait in a step
  SpmdConfig spmd{};
  /// If the three files of `tls` are set, control connections use mutual TLS at tls.listen instead
  /// of a Unix socket.
  TlsConfig tls{};
  /// The network by which the hosts of a job reach each other: the name of a device ("eth1") or
  /// addresses ("10.0.0.0/8"). "": host 0 publishes all of its addresses, and each other host uses
  /// the first address that it can reach (docs/clusters.md).
  std::string network{};
  /// The ports at which the processes of a host listen for other hosts, such as "4711-4800": one
  /// for the trainer and one for each chip. "": any free ports.
  std::string ports{};
  /// The transport of tensors between hosts; control connections use TLS in any case. UCX chooses
  /// its own ports, so it excludes `ports`. It needs `network`, unless WEFT_TRAINER has an address
  /// of host 0, and Debian's package libucx0 on all hosts.
  Choice<Wire> wire = Wire::automatic;
};

}  // namespace weft
