// A Recording is what another framework computed from one batch: the tensors of check.safetensors
// (docs/bring-your-model.md).
#pragma once

#include <map>
#include <string>

#include "framework/files/safetensors.h"
#include "framework/graph.h"
#include "models/graph_file.h"

namespace antichain {

class Recording {
 public:
  // Throws Error naming the file when it can't be read.
  explicit Recording(const std::string& file);

  const std::string& file() const { return file_; }
  const NamedNumbers* find(const std::string& name) const;  // nullptr: there is none
  // Throws Error naming the file when there is none.
  const NamedNumbers& at(const std::string& name) const;

  // Returns how far the other framework's own float32 was from a gradient (in the L2 norm) or from a loss of
  // several; infinity where that was not recorded.
  double error_of_float32(const std::string& of, size_t i = 0) const;

  // Returns the network for the recorded batch, without dropout and stochastic depth, and with the kind of
  // labels that the batch has. Throws Error when a tensor is missing, has another shape than in the network,
  // or belongs to nothing in it, and when a label is no class.
  Graph network(const GraphFile&) const;

 private:
  static std::string float32_error(const std::string& of);
  int samples(const std::string& input) const;
  void check_shape(const std::string& name, const Shape&) const;
  void check_tensors(const Graph&) const;
  void check_labels(const Graph&) const;
  void check_losses() const;

  std::string file_;
  std::map<std::string, NamedNumbers> tensors_;
};

}  // namespace antichain
