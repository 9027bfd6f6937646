#include "models/model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "framework/error.h"
#include "layers/input.h"
#include "layers/softmax_cross_entropy.h"
#include "models/resnet.h"
#include "models/squeezenet.h"
#include "models/vgg.h"

namespace antichain {
namespace {

struct Entry {
  std::string_view name;
  Graph (*make)(const ModelOptions&);
};

constexpr std::array models = {
    Entry{"resnet18", resnet18},
    Entry{"resnet20", resnet20},
    Entry{"squeezenet", squeezenet},
    Entry{"vgg16", vgg16},
};

// Levenshtein, "Binary codes capable of correcting deletions, insertions, and reversals", Soviet Physics
// Doklady, 1966: how many edits lead from one word to the other.
int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = std::exchange(row[0], int(i));
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replace = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replace, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::string_view nearest_to(std::string_view name) {
  return std::ranges::min_element(models, {}, [&](const Entry& e) { return edit_distance(name, e.name); })
      ->name;
}

}  // namespace

Graph make_model(std::string_view name, const ModelOptions& options) {
  for (const Entry& entry : models)
    if (entry.name == name) return entry.make(options);
  throw Error(
      fmt::format("there is no model '{}'", name),
      fmt::format("did you mean '{}'? known are {}", nearest_to(name), fmt::join(model_names(), ", ")),
      ExitCode::usage);
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const Entry& entry : models) names.emplace_back(entry.name);
  return names;
}

ModelInputs add_inputs(Graph& graph, const ModelOptions& options) {
  const NodeId images = input_images(graph, "images", {options.microbatch, 3, options.image, options.image});
  return {images, input_labels(graph, "labels", options.microbatch)};
}

NodeId add_loss(Graph& graph, const ModelInputs& inputs, NodeId logits, const ModelOptions& options) {
  return softmax_cross_entropy(graph, "loss", logits, inputs.labels,
                               {.label_smoothing = options.label_smoothing});
}

}  // namespace antichain
