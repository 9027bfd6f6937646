// This file says which networks an experiment is about, and where their profiles come from: a folder, or our
// own profiler.
#pragma once

#include <string>
#include <vector>

#include "partition/profile/profile.h"

namespace antichain {

// Returns the ten models of the paper's Table 1, in its order.
const std::vector<std::string>& paper_models();

// Parses "all", or a comma-separated list of names. Throws a usage Error when a name is empty or comes twice.
std::vector<std::string> parse_list(const std::string& text, const std::string& option,
                                    const std::vector<std::string>& all);
std::vector<int> parse_counts(const std::string& text, const std::string& option, int most);

// The network of --graph has a file of its own; other models are known by their names.
struct OwnNetwork {
  std::string model, graph;  // "", "": there is none
  int classes = 0;
};
// Returns the words of a command line that say which network: --model NAME, or --graph FILE.
std::vector<std::string> words_for(const OwnNetwork&, const std::string& model);

struct ProfileSource {
  std::string given;                 // a folder of profiles; "": profiles are measured
  std::string cache;                 // the folder of measured profiles
  std::string form = "cifar";        // of the measured networks
  int microbatch = 8;                // samples; of the measured networks
  std::string launcher;              // as in launch(); for measuring
  int ranks = 1;                     // that measure at once
  std::vector<std::string> options;  // for measuring: "--device", "cuda"
  OwnNetwork own;                    // for measuring
};

// Returns the file MODEL.txt, MODEL.json or MODEL/graph.txt of the given folder, else that of a profile which
// is measured once. Throws Error naming the folder, or saying why it could not be measured.
std::string profile_file(const ProfileSource&, const std::string& model);

// Throws a usage Error where the launcher does not say how many ranks to start, or names no program. "" is
// none.
void check_launcher(const std::string& launcher);

// Returns the words that start this program on so many ranks. In "mpirun -n {} --oversubscribe", {} stands
// for the number; "" starts threads.
std::vector<std::string> launch(const std::string& launcher, int ranks,
                                const std::vector<std::string>& words);

}  // namespace antichain
