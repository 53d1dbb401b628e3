#include "inspect/views/mesh_grid.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "data/files/utf8.hpp"
#include "inspect/views/actor_view.hpp"
#include "inspect/views/colours.hpp"

namespace weft {

std::vector<MeshCell> state_cells(const Snapshot& job, bool colours) {
  std::vector<MeshCell> cells(static_cast<std::size_t>(job.header.num_chips));
  for (const ActorView& actor : view_actors(job)) {
    if (actor.chip < 0) continue;
    cells.at(static_cast<std::size_t>(actor.chip)) = {
        .text = std::string(1, actor.letter), .colour = colours ? colour_of(actor.state) : ""};
  }
  return cells;
}

std::vector<MeshCell> step_cells(const Snapshot& job, bool colours) {
  std::vector<MeshCell> cells(static_cast<std::size_t>(job.header.num_chips));
  std::uint64_t latest = 0;  // latest step of a chip, since loops are ahead of chips
  for (const ActorRow& row : job.rows) {
    if (row.chip >= 0) latest = std::max(latest, row.step);
  }
  for (const ActorRow& row : job.rows) {
    if (row.chip < 0) continue;
    cells.at(static_cast<std::size_t>(row.chip)) = {
        .text = std::to_string(row.step), .colour = colours && row.step < latest ? kYellow : ""};
  }
  return cells;
}

std::vector<std::string> mesh_grid(const Snapshot& job, const std::vector<MeshCell>& by_chip) {
  const std::optional<Mesh> mesh = job.mesh();
  if (!mesh || mesh->size() != job.header.num_chips) return {};
  std::size_t columns = 1;
  for (const MeshCell& cell : by_chip) columns = std::max(columns, cell.text.size());
  const auto width = static_cast<int>(mesh->shape().back());
  const auto& axes = mesh->axis_names();
  const std::vector<std::string> outer(axes.begin(), axes.end() - 1);
  std::string heading = visible(fmt::format("{} ", fmt::join(outer, ",")));
  heading += fmt::format("| {} 0..{}", visible(axes.back()), width - 1);
  std::vector<std::string> lines{heading};
  for (int first = 0; first < mesh->size(); first += width) {
    std::vector<std::int64_t> coords = mesh->coords(first);
    coords.pop_back();
    std::string line = fmt::format("{:<{}}|", fmt::format("{}", fmt::join(coords, ",")),
                                   std::max<std::size_t>(heading.find('|'), 1));
    for (int position = first; position < first + width; ++position) {
      const MeshCell& cell = by_chip[static_cast<std::size_t>(mesh->device_at(position))];
      line += fmt::format(" {}{:>{}}{}", cell.colour, cell.text, columns,
                          cell.colour.empty() ? "" : kPlain);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace weft
