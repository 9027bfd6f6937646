// A network's loss is reported with what else it says: how many labels were hit, and, where the network
// reads tokens, the perplexity exp(loss) and the tokens a second. Which of them applies follows from loss
// and inputs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "framework/graph.h"
#include "partition/profile/profile.h"

namespace antichain {

struct Measures {
  bool hits = true;         // of the labels: there is an accuracy
  bool perplexity = false;  // the loss is the mean over tokens of −log of what each one's label was given
  int64_t tokens = 0;       // of a sample; 0: the network reads none
};
// Return what samples are called: "sequences" where the network reads tokens, else "images".
std::string_view samples_of(const Profile&);
std::string_view samples_of(const Measures&);
// Returns those of the model's own loss, which is its last node, and of its input "tokens".
Measures measures_of(const Graph&);

// A ComputeRate says how well ranks use their devices: the FLOPs of a step, of which a backward has two for
// each one of the forward, and the FLOPs a second of the layer that the profile found fastest, which is near
// the device's peak. Layers with less than a hundredth of the FLOPs are too short to tell.
struct ComputeRate {
  double step_flops = 0, best_per_s = 0;
  // Returns what each of the ranks computes in a step of that time, and its share of the best.
  double per_s(double step_s, int ranks) const { return step_flops / (step_s * ranks); }
  double share(double step_s, int ranks) const { return per_s(step_s, ranks) / best_per_s; }
};
ComputeRate compute_rate(const Profile&, int microbatches);

double perplexity(double loss);  // exp(loss)
// Returns ", perplexity 10.43"; "" where the loss has none.
std::string and_perplexity(double loss, const Measures&);

}  // namespace antichain
