// NextLogits gives the logits of the token that comes next behind a text which grows.
//
// What was read once is not read again: keys and values of the text so far are kept, and the network reads
// the tokens that are new (models/reading_on.h), on each rank with its stage. Where the network allows no
// such thing, and where a text has outgrown a row, it reads a whole row each time:
//
//   tokens      t0 t1 … tn−1  0  0 …     a row as long as the network's; of a longer text, its last tokens
//   logits                ↑              at the last token of the text: what comes next
//
// The zeros behind the text change no logits there, because no position attends to a later one. A rank holds
// one network at a time. So it reads the weights again where one network follows another, which is behind the
// first text and where a row is full.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "app/obtain/network_of_weights.h"
#include "app/obtain/whole_network.h"
#include "models/reading_on.h"

namespace antichain {

enum class Reading { new_tokens, whole_rows };

class NextLogits : public BatchSource {
 public:
  // Collective. `rank` must outlive it. With whole_rows nothing is kept. Throws a usage Error where the
  // network reads no tokens, attends to later ones, or has an input that a text does not fill.
  NextLogits(const WeightsOptions&, Rank&, Reading = Reading::new_tokens);

  const Graph& graph() const { return whole_; }
  int64_t vocabulary() const { return vocabulary_; }
  // Returns whether the next call reads the new tokens alone where they fit the row.
  bool keeps() const { return keeps_; }

  // Collective. Returns the logits behind the text, of which only the last rank has any. A text begins with
  // that of the call before. Throws Error where the weights don't fit, as WholeNetwork does.
  std::vector<float> of(std::span<const int32_t> text);

 private:
  void fill(std::string_view input, int microbatch, const Tensor& out) override;
  void fill_kept(const std::vector<float>& rows, const Tensor& out) const;
  void make_network(int64_t count);
  int64_t length() const { return std::ssize(text_); }

  const std::string weights_file_;
  const Precision precision_;
  Rank& rank_;
  const Graph whole_;
  const int64_t sequence_, vocabulary_;
  bool keeps_;
  std::span<const int32_t> text_;
  int64_t known_ = 0;                                            // tokens whose keys and values are kept
  std::map<std::string, std::vector<float>, std::less<>> rows_;  // of them, by the input that brings them
  int64_t count_ = 0;                                            // tokens that the network reads at once
  std::unique_ptr<WholeNetwork> network_;
};

}  // namespace antichain
