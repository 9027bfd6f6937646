// Reads and writes graph.json, in which a network comes from another framework: docs/bring-your-model.md has
// the format.
//
// A file of a hundred thousand nodes is read in time proportional to its length. What can't be a network is
// refused in one sentence that names the file, the node and where it comes from.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "framework/graph.h"
#include "models/options.h"

namespace antichain {

constexpr std::string_view graph_format = "antichain graph";
constexpr int graph_version = 1;
constexpr int64_t most_graph_bytes = int64_t(64)
                                     << 20;  // of graph.json; docs/command-line.md lists the limits
constexpr size_t most_graph_nodes = 200'000, most_graph_inputs = 64, most_graph_name_bytes = 256;

// The files of a folder NAME.antichain.
constexpr const char *folder_ending = ".antichain", *graph_in_folder = "graph.json",
                     *weights_in_folder = "weights.safetensors", *check_in_folder = "check.safetensors";

class GraphFile {
 public:
  // Reads the text of a graph.json, which errors call `origin`. Throws Error when it can't be a network that
  // ends in a loss.
  GraphFile(const std::string& text, std::string origin);

  const std::string& model() const { return model_; }
  const std::string& made_by() const { return made_by_; }  // "" where the file does not say
  int64_t classes() const { return classes_; }  // K, of the last loss; 0 where it is not of classes
  // Returns what the network has where its options leave it open: side and channels of its images, and the
  // largest shares that dropout and stochastic depth drop.
  UsualOptions usual() const { return usual_; }

  // Returns " (what the file says of where the node comes from)", or "".
  std::string where(std::string_view node) const;

  // Returns the network with the options' micro-batch. Labels are one class a sample, or with `soft_labels`
  // the shares of all, whichever the file has. Label smoothing above 0 replaces the file's, `dropout` the
  // share of every dropout, and `stochastic_depth` that of the node that drops the most, the others in
  // proportion. Throws Error (usage) for images, classes or a form that the network does not have.
  Graph graph(const ModelOptions&) const;

 private:
  struct Input {
    std::string name;
    std::vector<int64_t> shape;  // of a sample
    DType dtype = DType::f32;
    bool labels = false;  // classes of a loss, or shares of them
    bool target = false;
  };
  struct FileNode {
    std::string name, where;  // `where` is " (its text `from`)", or ""
    std::shared_ptr<const Op> op;
    std::vector<NodeId> inputs;
  };
  class Reading;

  [[noreturn]] void fail(const FileNode&, const std::string& why, const std::string& hint) const;
  Graph build(const ModelOptions&) const;
  std::shared_ptr<const Op> op_of(const FileNode&, const ModelOptions&) const;
  void check_form(const ModelOptions&) const;
  void check_uses();
  void check_shapes();

  std::string origin_, model_, made_by_;
  std::vector<Input> inputs_;
  std::vector<FileNode> nodes_;
  std::shared_ptr<StateDict> state_;  // nullptr where the file says nothing of it
  std::set<std::string> frozen_;      // names that files of weights have
  int64_t classes_ = 0;
  UsualOptions usual_;
};

// Returns the name of the graph.json that a user means by it or by its folder, NAME.antichain.
std::string graph_file_in(const std::string& path);
// Throws Error when there is no such file, or it is refused.
GraphFile read_graph_file(const std::string& path);

// Returns the text of a graph.json, of a graph that is not lowered. Throws Error where files do not know an
// operator.
std::string to_graph_json(const Graph&, const std::string& made_by);

}  // namespace antichain
