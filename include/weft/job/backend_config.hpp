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

/// How values without an annotation get a sharding.
enum class PartitioningMode : std::uint8_t {
  automatic,  ///< annotations are propagated
};
/// Returns "auto".
std::string_view to_string(PartitioningMode mode) noexcept;
/// Reads this name. Throws invalid_argument for other text.
PartitioningMode parse_partitioning_mode(std::string_view text);

/// The mesh, if the workers, chips or topology shouldn't determine it. make_mesh() has the rules.
struct SpmdConfig {
  std::vector<std::int64_t> mesh_shape{};  ///< a size per axis
  std::vector<std::string> axis_names{};
  /// The chip at each position of the mesh, row-major, as in Mesh. Workers get chips in order of
  /// their ids. Default: 0, 1, 2, ...
  std::vector<int> device_ids{};
  /// The mesh as chips within a host times hosts, instead of mesh_shape and axis_names. In this
  /// version jobs have one host, so every size of `dcn` must be 1.
  std::optional<HybridMesh> hybrid{};
  std::int64_t data_parallel_size = 0;
  std::int64_t model_parallel_size = 0;
  Choice<PartitioningMode> partitioning_mode = PartitioningMode::automatic;
};

/// Whether the workers of a job share a mesh.
enum class Backend : std::uint8_t {
  none,            ///< no mesh: each worker computes alone
  spmd,            ///< one mesh of the chips of all workers
  xla = spmd,      ///< torch_xla's name for it
  xla_tpu = spmd,  ///< Ray Train's name for it
};
/// Returns "none" or "spmd".
std::string_view to_string(Backend backend) noexcept;
/// Reads one of these names, "xla" or "xla_tpu". Throws invalid_argument, with the closest name,
/// for other text.
Backend parse_backend(std::string_view text);

struct BackendConfig {
  Choice<Backend> backend = Backend::spmd;
  double timeout_s = 1800;  ///< seconds for all joins, and for any wait inside a step
  SpmdConfig spmd{};
  /// If its three files are set, control connections use mutual TLS at tls.listen instead of a Unix
  /// socket.
  TlsConfig tls{};
};

}  // namespace weft
