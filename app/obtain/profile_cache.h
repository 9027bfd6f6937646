// Profiles that were measured before, in a folder: one file for each set of what times depend on. A file is a
// profile like any other, for --profile; its link is that of the job that measured it, so a job that finds it
// measures its own. What else a host does is not in the key: profiles that were measured while ranks lacked
// cores are not kept (app/report/profiling.h).
#pragma once

#include <optional>
#include <string>

#include "framework/context.h"
#include "framework/graph.h"
#include "partition/profile/profile.h"

namespace antichain {

// What the times of a network's nodes depend on.
struct ProfileSubject {
  std::string model, graph_hash;  // which knows sizes, precision, layouts
  std::string device;             // the processor's or GPU's name, with its libraries' versions
  std::string engine;             // what the device's kernels are chosen by: instruction set, library, modes
  std::string program;            // our own version and revision
  int microbatch = 0;             // samples
  int microbatches = 0;           // in a step that was measured
  int threads = 1, ranks_at_once = 1;
  int cores = 1, cores_of_host = 1;  // that the process may use; that there are
};
ProfileSubject profile_subject(const Graph& lowered, const Context&, int microbatches, int ranks_at_once);

struct KeptProfile {
  Profile profile;
  double age_s = 0;
};
// "40 s", "5 min", "3 h", "2 days"
std::string age(double seconds);

// Whether times are good enough to be used again: ranks had their cores, and measuring took as long as is
// usual.
bool worth_keeping(double starved_share, double measured_for_s, double usual_s);

class ProfileCache {
 public:
  // A folder, or "none". "auto" is what the environment's ANTICHAIN_PROFILE_CACHE says in these words, else
  // antichain/profiles in the user's folder for such things.
  explicit ProfileCache(const std::string& option);

  bool off() const { return folder_.empty(); }
  std::string file(const ProfileSubject&) const;
  // Nothing where there is none. Error where it can't be read, or says itself that it is of something else.
  std::optional<KeptProfile> find(const ProfileSubject&) const;
  void keep(const ProfileSubject&, const Profile&) const;

 private:
  std::string folder_;  // "": off
};

}  // namespace antichain
