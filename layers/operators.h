// Makes an operator from its type and options as files have them, and writes them: a table with one row an
// operator. docs/bring-your-model.md describes the format.
//
// The fields of an operator's options, their names and their types stand once, in the function `fields`
// beside them. It calls visit("name", value) for each field that a file may have; fields that only fusing
// sets (framework/fuse.h) are left out.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "framework/json.h"
#include "framework/op.h"

namespace antichain {

// An integer in an operator's options may be at most this, unless it counts channels or numbers.
constexpr int64_t most_option = 1 << 15;

// Returns the operator of this type for the node of this name. Fields that `options` lacks have their
// defaults; no options at all is nullptr. Throws Error naming what is wrong: the type, which must be one of
// operator_types(), a field that the operator does not have, or a value.
std::shared_ptr<const Op> read_operator(std::string_view type, const std::string& node, JsonReader* options);

// Returns the options that differ from the defaults. Throws Error when files do not know the operator.
nlohmann::ordered_json options_of(const Op&);

std::vector<std::string> operator_types();

}  // namespace antichain
