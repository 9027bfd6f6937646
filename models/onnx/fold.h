// Computes nodes whose inputs are all constants. Exporters compute shapes with some of them, and transpose
// weights with others.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/onnx/constants.h"

namespace antichain::onnx {

// Computes a node's output from its inputs, at least one. Returns nothing for options or shapes that are not
// computed here. The result of moving numbers about keeps its name. `origin` is what errors call the file.
using Fold = std::function<std::optional<NamedTensor>(const Node&, const std::vector<Constant>& inputs,
                                                      const std::string& origin)>;

// Returns nullptr for an operator that is not computed here.
const Fold* fold_of(const std::string& op);

// Returns the value of a node "Constant", or nothing where it has none that is read.
std::optional<NamedTensor> value_of_constant(const Node&, const std::string& origin);

}  // namespace antichain::onnx
