// The networks that an experiment is about, and where their prices come from: a folder of profiles, or our
// own profiler.
#pragma once

#include <string>
#include <vector>

#include "partition/profile/profile.h"

namespace antichain {

// The ten models of the paper's Table 1, in its order.
const std::vector<std::string>& paper_models();

// "all", or names with commas between them, as they are listed. Usage Error when a part is empty or there
// twice.
std::vector<std::string> parse_list(const std::string& text, const std::string& option,
                                    const std::vector<std::string>& all);
std::vector<int> parse_counts(const std::string& text, const std::string& option, int most);

struct ProfileSource {
  std::string given;                 // a folder of profiles; "": they are measured
  std::string cache;                 // where those that are measured are kept
  std::string form = "cifar";        // of those
  int microbatch = 8;                // of those, samples
  std::string launcher;              // of those: as in launch()
  int ranks = 1;                     // of those: that measure at once
  std::vector<std::string> options;  // of those: "--device", "cuda"
};

// The file MODEL.txt, MODEL.json or MODEL/graph.txt of the given folder, else one that is measured, once.
// Error naming the folder, or saying why it could not be measured.
std::string profile_file(const ProfileSource&, const std::string& model);

// Usage Error where it does not say how many ranks to start, or names no program. "" is none.
void check_launcher(const std::string& launcher);

// How to start this program on so many ranks: "mpirun -n {} --oversubscribe", {} being the number; "": as
// threads.
std::vector<std::string> launch(const std::string& launcher, int ranks,
                                const std::vector<std::string>& words);

}  // namespace antichain
