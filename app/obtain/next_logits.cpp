#include "app/obtain/next_logits.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/obtain/init_weights.h"
#include "framework/error.h"
#include "layers/attention.h"

namespace antichain {
namespace {

// Returns the network with inputs that tell where a text begins and ends, where it is one that has them.
Graph made_for_text(const WeightsOptions& weights, Rank& rank) {
  NetworkOptions form = form_of(weights, rank);
  form.packed = form.chosen().traits.reads == Reads::tokens;
  return form.made(1);
}

// Returns the length of a row. Throws Error where the network is none of tokens.
int64_t sequence_of(const Graph& graph) {
  const NodeId tokens = graph.find("tokens");
  if (tokens < 0 || graph[tokens].role() != Role::input || graph.shape(tokens).rank() != 2)
    throw Error(graph.model() + " reads no tokens", "give a network with an input 'tokens'", ExitCode::usage);
  for (const Node& node : graph) {
    const auto* attention = dynamic_cast<const Attention*>(node.op.get());
    if (attention && !attention->options.causal)
      throw Error(fmt::format("{} attends to later tokens in {}, so it does not say what comes next",
                              graph.model(), node.name),
                  "give a network whose attention is causal", ExitCode::usage);
    if (node.role() != Role::input) continue;
    const bool known = node.name == "tokens" || node.name == "labels" || node.name == "documents" ||
                       node.name == "positions";
    if (!known || node.signature.y.shape.rank() != 2)
      throw Error(fmt::format("{} has an input '{}', which a text does not fill", graph.model(), node.name),
                  "inputs of text are tokens, labels, documents and positions, N x T", ExitCode::usage);
  }
  return graph.shape(tokens)[1];
}

}  // namespace

NextLogits::NextLogits(const WeightsOptions& weights, Rank& rank, Reading reading)
    : weights_file_(weights.file),
      precision_(parse_precision(weights.network.precision)),
      rank_(rank),
      whole_(made_for_text(weights, rank)),
      sequence_(sequence_of(whole_)),
      vocabulary_(whole_.shape(logits_of(whole_))[class_axis_of(whole_)]),
      keeps_(reading == Reading::new_tokens && sequence_ > 1 && reading_on(whole_, 1)) {}

void NextLogits::make_network(int64_t count) {
  if (count == count_) return;
  const bool is_first = !network_;
  network_.reset();  // first, so that memory holds one
  std::optional<ReadingOn> part;
  if (count < sequence_) part = reading_on(whole_, count);
  network_ = std::make_unique<WholeNetwork>(part ? part->graph : whole_, precision_, weights_file_, 1,
                                            Mode::evaluate, rank_, default_optimiser(), Ranks::stages);
  if (is_first && rank_.prints()) print_skipped(network_->skipped());
  count_ = count;
  if (!part) return rows_.clear();
  std::map<std::string, std::vector<float>*> ends;
  for (const Kept& kept : part->kept) ends[kept.node] = &rows_[kept.input];
  network_->set_look([ends, count](const Node& node, const Tensor& y) {
    const auto found = ends.find(node.name);
    if (found == ends.end()) return;
    const float* const end = y.data<float>() + y.elements();
    found->second->insert(found->second->end(), end - count * (y.elements() / y.shape()[1]), end);
  });
}

std::vector<float> NextLogits::of(std::span<const int32_t> text) {
  text_ = text;
  const int64_t more = length() - known_;
  ANTICHAIN_CHECK(more > 0, "a text grows");
  keeps_ = keeps_ && more < sequence_ && length() <= sequence_;
  make_network(keeps_ ? more : sequence_);
  const std::vector<float> all = network_->run(*this).logits;
  known_ = length();
  const int64_t at = std::min(length(), count_) - 1, positions = count_;
  const bool classes_last = network_->class_axis() == network_->output().rank() - 1;
  std::vector<float> logits(static_cast<size_t>(vocabulary_));
  for (int64_t k = 0; k < vocabulary_; ++k)
    logits[size_t(k)] = all[size_t(classes_last ? at * vocabulary_ + k : k * positions + at)];
  return logits;
}

// Labels only fill their places: one counts, so that the loss, which nobody asks for, is a number.
void NextLogits::fill(std::string_view input, int, const Tensor& out) {
  if (const auto kept = rows_.find(input); kept != rows_.end()) return fill_kept(kept->second, out);
  std::vector<int32_t> row(size_t(out.elements()));
  const int64_t width = out.elements(), used = std::min(length(), width);
  const bool is_part = count_ < sequence_;
  if (input == "tokens") std::copy(text_.end() - used, text_.end(), row.begin());
  if (input == "labels") std::fill(row.begin() + 1, row.end(), -1);
  if (input == "documents" && is_part) std::fill(row.begin(), row.end() - used, -1);
  if (input == "documents" && !is_part) std::fill(row.begin() + used, row.end(), -1);
  if (input == "positions")
    for (int64_t i = 0; i < width; ++i) row[size_t(i)] = int32_t(i + (is_part ? known_ : 0));
  if (out.dtype() == DType::f32) return void(std::ranges::copy(row, out.data<float>()));
  std::ranges::copy(row, out.data<int32_t>());
}

void NextLogits::fill_kept(const std::vector<float>& rows, const Tensor& out) const {
  ANTICHAIN_CHECK(std::ssize(rows) == known_ * out.shape()[2],
                  "each part of the network has the same stages");
  float* const first = out.data<float>();
  const int64_t empty = out.elements() - std::ssize(rows);
  std::fill_n(first, empty, 0.0f);
  std::ranges::copy(rows, first + empty);
}

}  // namespace antichain
