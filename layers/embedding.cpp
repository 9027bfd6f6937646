#include "layers/embedding.h"

#include <fmt/format.h>

#include <vector>

#include "framework/error.h"
#include "layers/check_inputs.h"

namespace antichain {

Embedding::Embedding(EmbeddingOptions o) : options(o) {
  if (o.rows < 1 || o.width < 1) throw Error(fmt::format("{} wants a row and a column at least", str()));
  if (o.padding && (*o.padding < 0 || *o.padding >= o.rows))
    throw Error(fmt::format("{} has no row {}, which is to be the padding", str(), *o.padding));
}

std::string Embedding::str() const {
  return fmt::format("embedding({} x {}{}, weight {})", options.rows, options.width,
                     options.padding ? fmt::format(", padding {}", *options.padding) : "",
                     antichain::str(options.weight_init));
}

Signature Embedding::infer(std::span<const Shape> x) const {
  check_inputs("embedding", x, 1, 0);
  if (x[0].rank() < 1 || x[0].rank() >= Shape::max_rank)
    throw Error(fmt::format("embedding wants numbers of rows N x … of at most {} dimensions, not {}",
                            Shape::max_rank - 1, x[0].str()));
  std::vector<int64_t> y(x[0].begin(), x[0].end());
  y.push_back(options.width);
  Signature s;
  s.y = {.shape = Shape(y)};
  s.params = {{"weight", {options.rows, options.width}, options.weight_init}};
  s.forward_flops = double(s.y.shape.elements());  // copies
  return s;
}

EmbeddingSizes::EmbeddingSizes(const Embedding& op, const TensorSpec& ids)
    : samples(ids.shape[0]),
      positions(ids.shape.elements() / samples),
      rows(op.options.rows),
      width(op.options.width),
      padding(op.options.padding.value_or(-1)) {
  if (ids.dtype != DType::i32)
    throw Error(fmt::format("embedding wants the int32 numbers of an input, not {}", name_of(ids.dtype)),
                "give the input the dtype int32");
}

NodeId embedding(Graph& graph, std::string name, NodeId ids, EmbeddingOptions options) {
  return graph.add(std::move(name), std::make_shared<Embedding>(options), {ids});
}

}  // namespace antichain
