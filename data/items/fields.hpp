#pragma once
/// Checks the fields of datasets, and the parts from which datasets are made.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weft/data/dataset.hpp>

namespace weft {

/// Returns text such as "x f32[28,28], y i32[]".
std::string fields_text(const std::vector<Field>& fields);

/// Throws invalid_argument, naming the dataset, unless there are fields, and their names are unique
/// and not empty.
void check_fields(std::string_view dataset, const std::vector<Field>& fields);

/// Returns a name such as "zip(a, b)". If there are many parts, it contains only the first ones.
std::string name_of_parts(std::string_view kind, std::span<const DatasetPtr> parts);

/// Throws invalid_argument unless there are parts, none of them null.
void check_parts(std::string_view kind, std::span<const DatasetPtr> parts);
/// Acts like check_parts(), and also throws invalid_argument unless all parts have the same fields.
void check_alike(std::string_view kind, std::span<const DatasetPtr> parts);

/// Returns whether any part is sequential (Dataset::is_sequential()).
bool is_any_sequential(std::span<const DatasetPtr> parts);
/// Throws invalid_argument if a part is sequential, because a dataset of this `kind` reads items in
/// another order. The message ends with `advice`.
void check_any_order(std::string_view kind, std::span<const DatasetPtr> parts,
                     std::string_view advice);

}  // namespace weft
